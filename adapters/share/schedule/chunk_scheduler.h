// ChunkScheduler: jobs that go through the chunks of one partition together: GraphM §3.4.2.
//
//   chunk        0                 1                 2
//   job a   ███──────────────   ────────███───────  ███────       █ its turn
//   job b   ───█████─────────   ██████────────────     ███…       ─ waits
//   job c   ────────██───────   ─────────────██───
//
// A chunk comes into the processors' cache with the first job's turn and serves the
// others from there: nobody goes on to the next chunk before all are through this one. A
// turn lasts as long as the job's load for the chunk (formula 3, 4), so CPU time is given
// out in proportion to the loads. At any time turns use no more threads than there are
// cores; a turn that outlasts its lease no longer keeps the others from theirs. The longest
// load comes first, so that no core waits long for the last turn; of equal ones, who comes
// first and pays for the fetching changes with the chunk.
//
// Jobs that can do with fewer threads share the cores evenly: many have one each, and so
// need not take turns with themselves at what they write; the last one has what is free.
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
    uint32_t thread_count_min = 0;  // that it can do with; 0: as thread_count
  };

  ChunkScheduler(const std::vector<Member>& members, uint32_t core_count);

  // A member wants to process `chunk` (and never one before it), which should take so long.
  void ask(JobId job, uint32_t chunk, uint64_t load_ns = 0);
  // It is through with its chunk.
  void done(JobId job);
  // Its turn takes too long: it keeps nobody from a core any more.
  void overdue(JobId job);
  // It is through with the partition, or late, or dead.
  void leave(JobId job);

  struct Turn {
    JobId job = 0;
    bool first = false;  // at this chunk: it fetches it
    uint32_t thread_count = 1;
  };
  // Whose turn it is now. To be called after any of the above.
  std::vector<Turn> step();

  bool empty() const { return members_.empty(); }
  bool waits(JobId job) const;
  // Those whose chunk, or whose cores, others wait for; nobody waits: none.
  std::vector<JobId> holders() const;

 private:
  enum class State { kBetween, kWaits, kRuns, kOverdue };
  struct Place {
    JobId job = 0;
    uint32_t thread_count = 1;
    uint32_t thread_count_min = 1;
    uint32_t busy_threads = 0;  // if it runs
    State state = State::kBetween;
    uint32_t chunk = 0;  // that it wants, or runs, or may want next
    uint64_t load_ns = 0;
  };

  Place* find(JobId job);
  const Place* find(JobId job) const;
  uint32_t lowest_chunk() const;
  uint32_t behind(uint32_t chunk) const;
  std::vector<Place*> waiting(uint32_t chunk);

  const uint32_t core_count_;
  std::vector<Place> members_;
  uint32_t begun_chunk_ = UINT32_MAX;  // the last one that somebody began
};

}  // namespace graphlane::share
