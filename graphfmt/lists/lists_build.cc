#include "graphfmt/lists/lists_build.h"

#include <filesystem>

#include "graphfmt/arc_sort.h"
#include "graphfmt/sort/line.h"
#include "graphfmt/output/out_file.h"
#include "graphfmt/piece_checksums.h"
#include "graphfmt/staging.h"

namespace graphlane {
namespace {

// The files of one direction.
class ListsWriter : public ListSink {
 public:
  ListsWriter(std::string dir, Direction direction, CodecKind codec, size_t weight_bytes, bool is_sparse)
      : dir_(std::move(dir)),
        direction_(direction),
        codec_(ListCodec::of(codec)),
        weight_bytes_(weight_bytes),
        index_(list_index_shape(codec, weight_bytes > 0, is_sparse)),
        list_checksums_(kChecksumPieceBytes),
        weight_checksums_(kChecksumPieceBytes) {}

  Outcome<void> open() {
    for (const ListPart part : {ListPart::kLists, ListPart::kWeights}) {
      if (part == ListPart::kWeights && weight_bytes_ == 0) break;
      auto file = OutFile::create(dir_ + "/" + list_file_name(direction_, part));
      if (!file) return file.error();
      (part == ListPart::kLists ? lists_ : weights_) = std::move(*file);
    }
    return {};
  }

  Outcome<void> prepare(ListBatch& batch) override {
    if (auto grown = batch.encoded.reserve(bytes_max(batch)); !grown) return grown;
    batch.lengths.resize(batch.vertices.size());
    uint8_t* to = batch.encoded.as<uint8_t>();
    batch.tally = 0;
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      for (const uint32_t neighbour : batch.list(i)) batch.tally += neighbour >= batch.vertices[i];
      batch.lengths[i] = codec_.encode(batch.list(i), to);
      to += batch.lengths[i];
    }
    batch.encoded_bytes = static_cast<size_t>(to - batch.encoded.as<uint8_t>());
    return {};
  }

  Outcome<void> take(ListBatch& batch) override {
    batch.offset = index_.lists_bytes();
    batch.first_arc = index_.arc_count();
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      index_.append(batch.vertices[i], batch.list(i).size(), batch.lengths[i]);
    }
    single_count_ += batch.tally;
    list_checksums_.append(batch.encoded.data(), batch.encoded_bytes);
    weight_checksums_.append(batch.weights.data(), batch.weights.size());
    return {};
  }

  Outcome<void> settle(ListBatch& batch) override {
    if (auto done = lists_.write(batch.encoded.data(), batch.encoded_bytes, batch.offset); !done) return done;
    if (weight_bytes_ == 0) return {};
    return weights_.write(batch.weights.data(), batch.weights.size(), batch.first_arc * weight_bytes_);
  }

  // After the last batch: the index; and what the header says of all.
  Outcome<void> finish(uint64_t vertex_count, GraphHeader& header) {
    index_.finish(vertex_count);
    auto file = OutFile::create(dir_ + "/" + list_index_name(direction_));
    if (!file) return file.error();
    GraphHeader::File about{.name = list_index_name(direction_)};
    const auto write = [&](const void* data, size_t length) -> Outcome<void> {
      about.checksum = crc32c_extend(about.checksum, data, length);
      const uint64_t at = std::exchange(about.size_bytes, about.size_bytes + length);
      return file->write(data, length, at);
    };
    const auto write_checksums = [&](const PieceChecksums& checksums) -> Outcome<void> {
      std::vector<uint32_t> padded = checksums.all();
      padded.resize((padded.size() + 1) / 2 * 2);
      return write(padded.data(), padded.size() * sizeof(uint32_t));
    };
    if (auto done = index_.write(write); !done) return done;
    if (auto done = write_checksums(list_checksums_); !done) return done;
    header.files.push_back(
        {list_file_name(direction_, ListPart::kLists), index_.lists_bytes(), list_checksums_.checksum()});
    if (weight_bytes_ > 0) {
      if (auto done = write_checksums(weight_checksums_); !done) return done;
      header.files.push_back({list_file_name(direction_, ListPart::kWeights), index_.arc_count() * weight_bytes_,
                              weight_checksums_.checksum()});
    }
    header.files.push_back(about);
    for (OutFile* written : {&*file, &lists_, &weights_}) {
      if (!written->fd) continue;
      if (auto closed = written->close(); !closed) return closed;
    }
    return {};
  }

  uint64_t lists_bytes() const { return index_.lists_bytes(); }
  uint64_t arc_count() const { return index_.arc_count(); }
  // Arcs with a neighbour that is not below the vertex: the edges, where each stands in both ends' lists.
  uint64_t single_count() const { return single_count_; }

 private:
  size_t bytes_max(const ListBatch& batch) const {
    // The bound of each list may be a byte more than that of all together.
    return codec_.bytes_max(batch.neighbours.size()) + batch.vertices.size();
  }

  const std::string dir_;
  const Direction direction_;
  const ListCodec& codec_;
  const size_t weight_bytes_;
  OutFile lists_;
  OutFile weights_;
  // take() only: one thread at a time.
  ListIndexBuilder index_;
  PieceChecksums list_checksums_;
  PieceChecksums weight_checksums_;
  uint64_t single_count_ = 0;
};

class ListsBuilder {
 public:
  ListsBuilder(const ListsOptions& options, Staging staging) : options_(options), staging_(std::move(staging)) {}

  Outcome<ListsSummary> run() {
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
    header_ = {.kind = GraphKind::kLists,
               .is_directed = !options_.input.undirected,
               .codec = options_.codec,
               .weight = weight_kind(input.weighted, input.weight_type),
               .vertex_count = read->vertex_count,
               .files = {}};
    const bool is_sparse = read->edge_count < header_.vertex_count / 4;
    if (auto done = write_side(**sorter, Direction::kOut, is_sparse); !done) return done.error();
    if (header_.is_directed) {
      if (auto done = write_side(**sorter, Direction::kIn, is_sparse); !done) return done.error();
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
  Outcome<void> write_side(ArcSorter& sorter, Direction direction, bool is_sparse) {
    ListsWriter writer(staging_.path(), direction, options_.codec, weight_bytes(header_.weight), is_sparse);
    if (auto opened = writer.open(); !opened) return opened;
    const ArcOrder order = direction == Direction::kOut ? ArcOrder::kBySource : ArcOrder::kByTarget;
    if (auto merged = sorter.merge(order, writer); !merged) return merged;
    if (auto finished = writer.finish(header_.vertex_count, header_); !finished) return finished;
    header_.arc_count = writer.arc_count();
    header_.edge_count = header_.is_directed ? writer.arc_count() : writer.single_count();
    summary_.lists_bytes += writer.lists_bytes();
    return {};
  }

  Outcome<ListsSummary> commit() {
    auto file = OutFile::create(staging_.path() + "/" + kGraphHeaderFile);
    if (!file) return file.error();
    const auto bytes = encode_header(header_);
    if (auto done = file->write(bytes.data(), bytes.size(), 0); !done) return done.error();
    if (auto closed = file->close(); !closed) return closed.error();
    summary_.output_bytes = bytes.size();
    for (const GraphHeader::File& one : header_.files) summary_.output_bytes += one.size_bytes;
    if (options_.overwrite) {  // what has come meanwhile, too
      if (auto may = may_become_stored_graph(options_.output); !may) return may.error();
    }
    if (auto committed = staging_.commit(); !committed) return committed.error();
    return summary_;
  }

  const ListsOptions& options_;
  Staging staging_;
  GraphHeader header_;
  ListsSummary summary_;
};

}  // namespace

Outcome<void> may_become_stored_graph(const std::string& dir) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(dir, ignored) || fs::is_empty(dir, ignored)) return {};
  if (is_stored_graph(dir)) return {};
  return make_error(EEXIST, "{}: not a stored graph, so it is not overwritten", dir);
}

Outcome<ListsSummary> build_lists(const ListsOptions& options) {
  return or_no_memory([&]() -> Outcome<ListsSummary> {
    if (options.overwrite) {
      if (auto may = may_become_stored_graph(options.output); !may) return may.error();
    }
    auto staging = Staging::create(options.output, Staging::Kind::kDirectory, options.overwrite);
    if (!staging) return staging.error();
    return ListsBuilder(options, std::move(*staging)).run();
  });
}

}  // namespace graphlane
