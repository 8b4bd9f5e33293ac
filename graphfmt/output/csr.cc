#include "graphfmt/output/csr.h"

#include <cstring>
#include <filesystem>

#include "graphfmt/input/edge_sort.h"
#include "graphfmt/output/npy.h"
#include "graphfmt/sort/line.h"
#include "graphfmt/staging.h"

namespace graphlane::graphfmt {
namespace {

constexpr size_t kCsrBatchEdges = size_t{64} << 10;
constexpr uint64_t kInt32Max = 2147483647;

class SorterSink : public EdgeSink {
 public:
  explicit SorterSink(EdgeSorter& sorter) : sorter_(sorter) {}
  Outcome<void> take(EdgeBatch& batch) override {
    return sorter_.add(batch.records.data(), batch.edge_count);
  }

 private:
  EdgeSorter& sorter_;
};

std::string descr_of(WeightType type) {
  switch (type) {
    case WeightType::kFloat32: return "<f4";
    case WeightType::kFloat64: return "<f8";
    case WeightType::kInt64: return "<i8";
  }
  return "";
}

// Number is int32_t or int64_t.
template <class Number>
Outcome<void> write_csr(const std::string& dir, const EdgeListOptions& list, uint64_t vertex_count,
                        EdgeSorter& sorter) {
  const std::string descr = sizeof(Number) == 4 ? "<i4" : "<i8";
  auto indptr = NpyWriter::create(dir + "/indptr.npy", descr, vertex_count + 1);
  if (!indptr) return indptr.error();
  auto indices = NpyWriter::create(dir + "/indices.npy", descr, sorter.edge_count());
  if (!indices) return indices.error();
  std::optional<NpyWriter> data;
  if (list.weighted) {
    auto created =
        NpyWriter::create(dir + "/data.npy", descr_of(list.weight_type), sorter.edge_count());
    if (!created) return created.error();
    data = std::move(*created);
  }
  const size_t edge_bytes = edge_size_bytes(list.weighted, list.weight_type);
  Buffer records;
  if (auto grown = records.reserve(kCsrBatchEdges * edge_bytes); !grown) return grown;
  uint64_t source = 0, edge_index = 0;  // indptr has been written below `source`
  const auto begin_sources = [&](uint64_t end) -> Outcome<void> {
    for (; source < end; ++source) {
      const auto begin = static_cast<Number>(edge_index);
      if (auto done = indptr->append(&begin, sizeof begin); !done) return done;
    }
    return {};
  };
  while (true) {
    auto count = sorter.next(records.data(), kCsrBatchEdges);
    if (!count) return count.error();
    if (*count == 0) break;
    const char* record = records.data();
    for (size_t i = 0; i < *count; ++i, record += edge_bytes, ++edge_index) {
      Edge edge;
      std::memcpy(&edge, record, sizeof edge);
      if (auto done = begin_sources(uint64_t{edge.source} + 1); !done) return done;
      const auto target = static_cast<Number>(edge.target);
      if (auto done = indices->append(&target, sizeof target); !done) return done;
      if (!data) continue;
      if (auto done = data->append(record + sizeof edge, edge_bytes - sizeof edge); !done) {
        return done;
      }
    }
  }
  if (auto done = begin_sources(vertex_count + 1); !done) return done;
  if (auto done = indptr->close(); !done) return done;
  if (auto done = indices->close(); !done) return done;
  return data ? data->close() : Outcome<void>();
}

}  // namespace

Outcome<void> may_become_csr(const std::string& dir) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(dir, ignored) || fs::is_empty(dir, ignored)) return {};
  if (fs::exists(dir + "/indptr.npy", ignored) && fs::exists(dir + "/indices.npy", ignored)) {
    return {};
  }
  return make_error(EEXIST, "{}: not a CSR, so it is not overwritten", dir);
}

Outcome<EdgeListSummary> build_csr(const CsrOptions& options) {
  return or_no_memory([&]() -> Outcome<EdgeListSummary> {
    if (options.overwrite) {
      if (auto may = may_become_csr(options.output); !may) return may.error();
    }
    auto staging = Staging::create(options.output, Staging::Kind::kDirectory, options.overwrite);
    if (!staging) return staging.error();
    EdgeListOptions list = options.list;
    list.memory_budget_bytes = options.list.memory_budget_bytes / 4;
    EdgeSorter sorter(EdgeOrder::kSourceTarget, edge_size_bytes(list.weighted, list.weight_type),
                      options.list.memory_budget_bytes - list.memory_budget_bytes,
                      list.spill_directory);
    SorterSink sink(sorter);
    auto read = read_edges(list, sink);
    if (!read) return read.error();
    if (auto finished = sorter.finish(); !finished) return finished.error();
    const bool is_small = std::max(read->vertex_count, sorter.edge_count()) <= kInt32Max;
    auto written = is_small ? write_csr<int32_t>(staging->path(), list, read->vertex_count, sorter)
                            : write_csr<int64_t>(staging->path(), list, read->vertex_count, sorter);
    if (!written) return staging->with_final_name(written.error(), options.output);
    if (options.overwrite) {  // what has come meanwhile, too
      if (auto may = may_become_csr(options.output); !may) return may.error();
    }
    if (auto committed = staging->commit(); !committed) return committed.error();
    return read;
  });
}

}  // namespace graphlane::graphfmt
