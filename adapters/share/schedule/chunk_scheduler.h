// ChunkScheduler: jobs go through the chunks of one partition together: GraphM §3.4.2.
//
//   chunk        0                 1                 2
//   job a   ███──────────────   ────────███───────  ███────       █ its turn
//   job b   ───█████─────────   ██████────────────     ███…       ─ waits
//   job c   ────────██───────   ─────────────██───
//
// The first job's turn brings a chunk into the processors' cache, and serves the others from there:
// no job goes on to the next chunk before all are through this one. A turn lasts as long as the
// job's load for the chunk (formulas 3 and 4), so jobs get CPU time in proportion to their loads.
// Turns never use more threads than there are cores. A turn that outlasts its lease no longer
// counts, so it cannot hold the others up. The longest load goes first, so that no core waits long
// for the last turn. Jobs of equal load take turns at going first, because the first pays for the
// fetch.
//
// Jobs that can do with fewer threads share the cores evenly. Of many jobs each has one thread, and
// so needs no locks for what it writes. The last job of a chunk gets all free cores.
//
// Pure bookkeeping, no clock. Threads: one.
#pragma once

#include <cstdint>
#include <vector>

namespace graphlane::share {

class ChunkScheduler {
 public:
  using JobId = uint32_t;
  struct Member {
    JobId job = 0;
    uint32_t thread_count = 1;
    uint32_t thread_count_min = 0;  // the least it can do with; 0: as thread_count
  };

  ChunkScheduler(const std::vector<Member>& members, uint32_t core_count);

  // The member waits for a turn at `chunk`, and at none before it. The turn should take `load_ns`.
  void ask(JobId job, uint32_t chunk, uint64_t load_ns = 0);
  // The member has finished its chunk.
  void done(JobId job);
  // The member's turn takes too long: it no longer keeps a core from others.
  void overdue(JobId job);
  // The member has finished the partition, is late, or has died.
  void leave(JobId job);

  struct Turn {
    JobId job = 0;
    bool first = false;  // at this chunk: it pays for the fetch
    uint32_t thread_count = 1;
  };
  // The turns that begin now. Call it after any of the above.
  std::vector<Turn> step();

  bool empty() const { return members_.empty(); }
  bool waits(JobId job) const;
  // The members that hold a chunk or cores for which others wait; empty if no member waits.
  std::vector<JobId> holders() const;

 private:
  enum class State { kBetween, kWaits, kRuns, kOverdue };
  struct Place {
    JobId job = 0;
    uint32_t thread_count = 1;
    uint32_t thread_count_min = 1;
    uint32_t busy_threads = 0;  // while it runs
    State state = State::kBetween;
    uint32_t chunk = 0;  // the one it waits for or runs, or its next
    uint64_t load_ns = 0;
  };

  Place* find(JobId job);
  const Place* find(JobId job) const;
  uint32_t lowest_chunk() const;
  uint32_t behind(uint32_t chunk) const;
  std::vector<Place*> waiting(uint32_t chunk);

  const uint32_t core_count_;
  std::vector<Place> members_;
  uint32_t begun_chunk_ = UINT32_MAX;  // the last chunk at which a turn began
};

}  // namespace graphlane::share
