// Sweeps: the striped files that are open together, and the order in which they are read.
//
// An engine that keeps its edges in many files (GraphChi's shards) reads one after the other, and
// then starts over. Each file fits in memory, but all of them may not. So the decision that
// ops/open.cc makes for one file at its opening is made here for all open files, repeatedly:
//
//   together they      parts' page cache        the mount's pages
//   fit twice          as decided per file      as decided per file
//   fit once           is used if it hits       stay
//   do not fit         holds prefetched ranges  are dropped, in the order of reading
//
// On disks, the ranges that the last sweep read next (iomgr/read/file_sweeps.h) are prefetched while
// the program computes: into the parts' page cache, from which they are spliced.
//
// Threads: everything but start() is safe from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "iomgr/base/mutex.h"
#include "iomgr/cache/memory_budget.h"
#include "iomgr/read/file_sweeps.h"
#include "iomgr/volume/parts/striped_file.h"

namespace graphlane::fuse {

class Sweeps {
 public:
  // One handle of a file.
  class Member {
   public:
    Member(Sweeps& sweeps, std::shared_ptr<const StripedFile> file);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    Sweeps& sweeps_;
    const std::shared_ptr<const StripedFile> file_;
  };

  // Call it before the first request.
  void start(const Volume& volume, IoMode io_mode);

  // How often the open files fit together; kTwice if at most one is open.
  MemoryFit fit() const { return fit_.load(std::memory_order_relaxed); }
  bool has_several_files() const { return has_several_files_.load(std::memory_order_relaxed); }
  bool on_disks() const { return on_disks_; }
  // The number of bytes read last that stay in memory when files do not fit.
  uint64_t kept_bytes() const { return kept_bytes_.load(std::memory_order_relaxed); }

  // Counts bytes of a file that fits by itself. Looks at the memory now and then.
  void count(uint64_t read_bytes);
  // A step of a sweep (iomgr/read/plan.h); prefetch_next() follows its reply.
  void arrive(const StripedFile& file, ByteRange range);
  void prefetch_next(const StripedFile& file, ByteRange range);
  PrefetchStats stats() const { return files_.stats(); }

 private:
  struct Open {
    std::shared_ptr<const StripedFile> file;
    uint32_t handle_count = 0;
  };

  void check_memory();
  std::vector<Open>::iterator position(const Uuid& file_id) REQUIRES(mu_);
  std::shared_ptr<const StripedFile> find(const Uuid& file_id);

  // Constant after start().
  bool by_memory_ = false;
  bool on_disks_ = false;

  FileSweeps files_;
  std::atomic<bool> has_several_files_{false};
  std::atomic<MemoryFit> fit_{MemoryFit::kTwice};
  std::atomic<uint64_t> kept_bytes_{0};
  Mutex mu_;
  std::vector<Open> open_ GUARDED_BY(mu_);
};

}  // namespace graphlane::fuse
