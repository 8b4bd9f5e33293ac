// ArcSorter: sorts a stream of edges into adjacency lists, within a memory budget. It is the
// external sort behind every builder of lists.
//
//   read_edges ─▶ take: fills runs ─▶ settle: sorts a full run by source and by target, encodes it
//                                     (arc_run.h), keeps it in a RunStore: memory, then the spill file
//   merge      ─▶ ranges of vertices, about equal in arcs: decodes their pieces of all runs, sorts ─▶ ListSink
//
// The result does not depend on the number of threads, nor on the budget. Equal arcs stay in input
// order.
//
// While it is sorted, a vertex's list must fit into half of the budget, at about 30 bytes a
// neighbour (62 with weights). Otherwise the result is ENOMEM, which names the vertex.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graphfmt/edge.h"
#include "graphfmt/list_sink.h"
#include "graphfmt/sort/arc_run.h"
#include "graphfmt/sort/run_store.h"
#include "iomgr/base/mutex.h"

namespace graphlane::graphfmt {

enum class ArcOrder { kBySource, kByTarget };

struct ArcSortOptions {
  std::string spill_path;  // must not exist
  std::string label;       // for Progress
  bool is_weighted = false;
  WeightType weight_type = WeightType::kFloat32;
  bool by_source = true;
  bool by_target = true;
  bool is_simple = false;  // neither self-loops nor equal arcs: of those the first stays
  uint64_t memory_budget_bytes = uint64_t{1} << 30;
  unsigned threads = 0;  // 0: one for each core we may use, as memory allows
  size_t run_edges = 0;  // for tests; 0: as memory allows
};

class ArcSorter : public EdgeSink {
 public:
  // EINVAL: too little memory; it says how much is the least.
  static Outcome<std::unique_ptr<ArcSorter>> create(const ArcSortOptions& options);

  // For read_edges().
  unsigned threads() const { return threads_; }
  uint64_t reader_bytes() const { return reader_bytes_; }
  Outcome<void> take(EdgeBatch& batch) override;
  Outcome<void> settle() override;

  // After the last edge: sorts the run that was filling.
  Outcome<void> finish();
  // Gives all lists to the sink. Call it after finish(), once for each order.
  Outcome<void> merge(ArcOrder order, ListSink& sink);

  uint64_t spilled_bytes() const { return store_.spilled_bytes(); }

 private:
  struct FullRun {
    size_t index = 0;
    size_t edge_count = 0;
    Buffer edges;
  };
  // The arcs with a first vertex in [first, end).
  struct Range {
    uint64_t first = 0;
    uint64_t end = 0;
    uint64_t arc_count_max = 0;
  };
  struct MergeItem;
  using BlockPlace = ArcRunTable::const_iterator;

  ArcSorter(const ArcSortOptions& options, unsigned threads, uint64_t reader_bytes,
            size_t run_edges, uint64_t store_bytes);
  size_t store_index(size_t run, ArcOrder order) const {
    return run * orders_ + (order == ArcOrder::kByTarget && options_.by_source ? 1 : 0);
  }
  void close_run();
  std::optional<FullRun> next_full();
  template <class A, class E>
  Outcome<void> sort_full(const FullRun& full);
  template <class A, class E>
  Outcome<void> keep_sorted(const FullRun& full, ArcOrder order, Buffer& arcs, Buffer& scratch);
  // The blocks of a run that may have arcs of the range.
  static std::pair<BlockPlace, BlockPlace> blocks_of(const ArcRunTable& table, const Range& range);
  std::vector<Range> divide(size_t order_index, uint64_t arcs_target) const;
  template <class A>
  Outcome<void> gather(const Range& range, ArcOrder order, MergeItem& item) const;
  template <class A>
  void split(MergeItem& item, A* arcs, size_t count) const;

  // Constant after construction.
  const ArcSortOptions options_;
  const unsigned threads_;
  const uint64_t reader_bytes_;
  const size_t run_edges_;
  const size_t edge_bytes_;
  const size_t weight_bytes_;
  const size_t orders_;
  RunStore store_;  // thread-safe; run r in order o: r × orders + o
  // take() only: one thread at a time.
  Buffer filling_;
  size_t filling_bytes_ = 0;
  size_t run_count_ = 0;
  mutable Mutex mu_;
  std::vector<FullRun> full_ GUARDED_BY(mu_);
  // by store_index(); grows under mu_, read once no run comes any more
  std::vector<ArcRunTable> tables_;
};

}  // namespace graphlane::graphfmt
