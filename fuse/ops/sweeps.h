// Sweeps: striped files that are open together, and in which order they are read.
//
// An engine that keeps its edges in many files (GraphChi's shards) reads one after the other, and
// begins anew. Each by itself fits in memory; all of them may not. So what is asked of one
// file at its opening (ops/open.cc) is asked of all again and again:
//
//   together they      parts' page cache        the mount's pages
//   fit twice          as each file says        as each file says
//   fit once           what is there already    stay
//   do not fit         what was read ahead      go, in the order of reading
//
// On disks, what the last sweep read next (iomgr/read/sequence_predictor.h) is begun while the program
// computes: into the page cache of the parts, whence it is spliced when the kernel asks.
//
// Threads: everything but start() is safe from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "iomgr/base/mutex.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/read/sequence_predictor.h"
#include "iomgr/volume/parts/striped_file.h"

namespace graphlane {

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

  // Before the first request.
  void start(const Volume& volume, IoMode io_mode);

  // Of the files that are open, if they are several.
  bool fit_twice() const { return fit_.load(std::memory_order_relaxed) == Fit::kTwice; }
  bool fit() const { return fit_.load(std::memory_order_relaxed) != Fit::kNot; }
  // How much of what was read last stays of those that do not fit, by themselves or together.
  uint64_t kept_bytes() const { return kept_bytes_.load(std::memory_order_relaxed); }

  // The kernel asks for a range of the file, which fits by itself; it has been answered. Of one file
  // alone the kernel knows what comes next, and in a first sweep it guesses enough.
  void arrive(const StripedFile& file, ByteRange range);
  void begin_next(const StripedFile& file, ByteRange range);
  NextStats stats() const { return next_reads_.stats(); }

 private:
  enum class Fit : uint8_t { kTwice, kOnce, kNot };
  struct Open {
    std::shared_ptr<const StripedFile> file;
    uint32_t handle_count = 0;
  };

  bool is_step(const StripedFile& file, ByteRange range) const;
  void look_at_memory();
  std::vector<Open>::iterator position(const Uuid& file_id) REQUIRES(mu_);
  std::shared_ptr<const StripedFile> find(const Uuid& file_id);

  // Constant after start().
  bool by_memory_ = false;
  bool on_disks_ = false;

  SequencePredictor next_reads_;
  std::atomic<bool> are_several_{false};
  std::atomic<Fit> fit_{Fit::kTwice};
  std::atomic<uint64_t> kept_bytes_{0};
  PageCacheShare ahead_share_;
  std::atomic<uint64_t> unlooked_bytes_{0};  // read since the memory was looked at
  Mutex mu_;
  std::vector<Open> open_ GUARDED_BY(mu_);
};

}  // namespace graphlane
