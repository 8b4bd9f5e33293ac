#include "graphfmt/stored_graph_build.h"

#include <filesystem>

#include "graphfmt/graph_directory.h"
#include "graphfmt/output/out_file.h"
#include "graphfmt/sort/arc_sort.h"
#include "graphfmt/sort/line.h"
#include "graphfmt/staging.h"

namespace graphlane::graphfmt {
namespace {

class StoredGraphBuilder {
 public:
  StoredGraphBuilder(const StoredGraphOptions& options, StoredGraphFormat& format, Staging staging)
      : options_(options), format_(format), staging_(std::move(staging)) {}

  Outcome<StoredGraphSummary> run() {
    auto sorter = ArcSorter::create({.spill_path = staging_.path() + "/spill",
                                     .label = "write " + options_.output,
                                     .is_weighted = options_.input.weighted,
                                     .weight_type = options_.input.weight_type,
                                     .by_target = !options_.input.undirected,
                                     .is_simple = options_.input.simple,
                                     .memory_budget_bytes = options_.input.memory_budget_bytes,
                                     .threads = options_.input.threads,
                                     .run_edges = options_.run_edges});
    if (!sorter) return sorter.error();
    EdgeListOptions input = options_.input;
    input.memory_budget_bytes = (*sorter)->reader_bytes();
    input.threads = (*sorter)->threads();
    input.simple = false;  // the sorter sees to it
    auto read = read_edges(input, **sorter);
    if (!read) return read.error();
    if (auto finished = (*sorter)->finish(); !finished) return finished.error();
    header_.is_directed = !options_.input.undirected;
    header_.codec = options_.codec;
    header_.weight = weight_kind(input.weighted, input.weight_type);
    header_.version = format_version(input.weighted);
    header_.vertex_count = read->vertex_count;
    format_.begin(read->edge_count, header_);
    if (auto done = write_side(**sorter, Direction::kOut); !done) return done.error();
    if (header_.is_directed) {
      if (auto done = write_side(**sorter, Direction::kIn); !done) return done.error();
    }
    summary_.notes = std::move(read->notes);
    summary_.vertex_count = header_.vertex_count;
    summary_.arc_count = header_.arc_count;
    summary_.edge_count = header_.edge_count;
    summary_.spilled_bytes = (*sorter)->spilled_bytes();
    sorter->reset();  // with its spill file
    return commit();
  }

 private:
  Outcome<void> write_side(ArcSorter& sorter, Direction direction) {
    const ArcOrder order = direction == Direction::kOut ? ArcOrder::kBySource : ArcOrder::kByTarget;
    const auto merge = [&](ListSink& sink) { return sorter.merge(order, sink); };
    const auto arcs = format_.write_side(direction, merge, staging_.path(), header_);
    if (!arcs) return arcs.error();
    header_.arc_count = arcs->all;
    header_.edge_count = header_.is_directed ? arcs->all : arcs->single;
    return {};
  }

  Outcome<StoredGraphSummary> commit() {
    if (auto done = format_.end(staging_.path(), header_); !done) return done.error();
    const auto bytes = encode_header(header_);
    const std::string path = staging_.path() + "/" + kGraphHeaderFile;
    if (auto done = write_new_file(path, bytes.data(), bytes.size()); !done) return done.error();
    summary_.output_bytes = bytes.size();
    for (const GraphHeader::File& one : header_.files) summary_.output_bytes += one.size_bytes;
    if (options_.overwrite) {  // what has come meanwhile, too
      if (auto may = may_become_stored_graph(options_.output); !may) return may.error();
    }
    if (auto committed = staging_.commit(); !committed) return committed.error();
    return std::move(summary_);
  }

  const StoredGraphOptions& options_;
  StoredGraphFormat& format_;
  Staging staging_;
  GraphHeader header_;
  StoredGraphSummary summary_;
};

}  // namespace

Outcome<void> may_become_stored_graph(const std::string& dir) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(dir, ignored) || fs::is_empty(dir, ignored)) return {};
  if (is_stored_graph(dir)) return {};
  return make_error(EEXIST, "{}: not a stored graph, so it is not overwritten", dir);
}

Outcome<void> write_new_file(const std::string& path, const void* data, size_t size_bytes) {
  auto file = OutFile::create(path);
  if (!file) return file.error();
  if (auto done = file->write(data, size_bytes, 0); !done) return done;
  return file->close();
}

Outcome<StoredGraphSummary> build_stored_graph(const StoredGraphOptions& options,
                                               StoredGraphFormat& format) {
  return or_no_memory([&]() -> Outcome<StoredGraphSummary> {
    if (options.overwrite) {
      if (auto may = may_become_stored_graph(options.output); !may) return may.error();
    }
    auto staging = Staging::create(options.output, Staging::Kind::kDirectory, options.overwrite);
    if (!staging) return staging.error();
    return StoredGraphBuilder(options, format, std::move(*staging)).run();
  });
}

}  // namespace graphlane::graphfmt
