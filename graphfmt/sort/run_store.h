// RunStore: the runs of an external sort. A run is up to run_bytes of edges and,
// once it is sorted by block, a table of block_count + 1 offsets (in edges) into
// it. Runs stay in memory as long as their share of the budget lasts; the others
// go to a spill file:
//
//   spill   | edges of run 0 | table | edges of run 1 | table | …    fixed slots
//
// Threads: any may call anything; one run is touched by one thread at a time,
// except by view_*() once no run changes any more.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graphfmt/buffer.h"
#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/mutex.h"

namespace graphlane::graphfmt {

// The sort buffers of one thread.
struct RunBuffers {
  Buffer edges;
  Buffer table;
};

class RunStore {
 public:
  // `table_bytes`: of the largest table. The spill file is made when the first run goes there.
  RunStore(std::string spill_path, size_t run_bytes, size_t table_bytes, uint64_t memory_bytes);
  ~RunStore();

  // Keeps a run: takes the buffers, or, if it went to the spill file, leaves them
  // for the next. An unsorted run comes without a table.
  Outcome<void> put(size_t run, size_t edges_bytes, RunBuffers& buffers);

  // Gives a run's edges back, out of the store; the size in bytes.
  Outcome<size_t> take(size_t run, Buffer& edges);

  // A piece of a run's edges (bytes) or table (entries), in place or read into
  // `scratch`, which is large enough.
  Outcome<const char*> view_edges(size_t run, size_t first, size_t length, Buffer& scratch) const;
  Outcome<const uint32_t*> view_table(size_t run, size_t first, size_t count,
                                      Buffer& scratch) const;

  size_t run_count() const;
  uint64_t memory_used_bytes() const;
  uint64_t spilled_bytes() const;  // ever written to the spill file
  void remove_spill();

 private:
  struct Run {
    size_t edges_bytes = 0;
    RunBuffers resident;  // empty: in the spill file
  };

  // Whether `bytes` more may stay in memory; counts them if so.
  bool claim_memory(uint64_t bytes);
  Run& slot(size_t run);
  const Run& slot(size_t run) const;
  uint64_t spill_offset(size_t run) const { return run * (run_bytes_ + table_bytes_); }
  Outcome<void> open_spill();
  Outcome<void> spill(uint64_t offset, const char* data, size_t length);
  Outcome<void> read(uint64_t offset, char* data, size_t length) const;

  // Constant after construction.
  const std::string spill_path_;
  const size_t run_bytes_;
  const size_t table_bytes_;
  const uint64_t memory_bytes_;
  mutable Mutex mu_;
  Fd spill_fd_ GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Run>> runs_ GUARDED_BY(mu_);
  uint64_t memory_used_bytes_ GUARDED_BY(mu_) = 0;
  uint64_t spilled_bytes_ GUARDED_BY(mu_) = 0;
};

}  // namespace graphlane::graphfmt
