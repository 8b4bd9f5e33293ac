// EdgeSorter: an external sort of edges by both their ends, within a memory budget.
//
//   add ─▶ a run fills ─▶ sorted (radix) ─▶ spill file, one run behind the other
//   next ◀─ merged, the first run first among equals: equal edges stay in the order of the input
//
// One run alone stays in memory. The spill file has no name, so nothing is left of it, however the
// program ends. This one keeps whole edges with weights of any type; arc_sort.h sorts into
// adjacency lists.
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graphfmt/buffer.h"
#include "graphfmt/edge.h"
#include "iomgr/base/fd.h"

namespace graphlane::graphfmt {

enum class EdgeOrder { kSourceTarget, kTargetSource };

// A file without a name in `directory`; empty: where temporary files belong.
Outcome<Fd> open_spill_file(const std::string& directory);

class EdgeSorter {
 public:
  // `edge_bytes`: of a record, at most 16. At least 1 MiB of memory is used.
  EdgeSorter(EdgeOrder order, size_t edge_bytes, uint64_t memory_bytes,
             std::string spill_directory);

  Outcome<void> add(const char* records, size_t edge_count);
  // After the last add().
  Outcome<void> finish();
  // Up to `count_max` of the next edges to `records`; 0: there are no more.
  Outcome<size_t> next(char* records, size_t count_max);

  uint64_t edge_count() const { return edge_count_; }

 private:
  struct Run {
    uint64_t offset = 0;  // in the spill file
    uint64_t bytes_left = 0;
    Buffer buffer;
    size_t at = 0, end = 0;  // in the buffer
  };

  uint64_t key_of(const char* record) const;
  Outcome<void> sort_run();
  Outcome<void> spill_run();
  Outcome<bool> refill(Run& run);
  void push(size_t run);

  const EdgeOrder order_;
  const size_t edge_bytes_;
  const uint64_t memory_bytes_;
  const std::string spill_directory_;
  const size_t run_bytes_;
  Buffer filling_, scratch_;
  size_t filling_bytes_ = 0;
  size_t taken_bytes_ = 0;  // of filling_, by next(), where nothing was spilled
  Fd spill_;
  uint64_t spill_bytes_ = 0;
  std::vector<Run> runs_;
  struct Head {
    uint64_t key;
    size_t run;
    bool operator>(const Head& other) const {
      return key != other.key ? key > other.key : run > other.run;
    }
  };
  std::vector<Head> heap_;
  uint64_t edge_count_ = 0;
};

}  // namespace graphlane::graphfmt
