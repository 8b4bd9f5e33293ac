// GlobalTable: which job needs which unit, and whose turn it is: GraphM's
// algorithm 2 without its memory and its messages.
//
//   order   | 4 | 0 | 1 | 7 | 2 | …            by formula 5, anew for each round
//                     ▲ open
//   job a   needs 1 2 7     waits              ──▶ gets 1
//   job b   needs   2       waits              suspended until 2 is open
//   job c   needs 1         computes on 0      awaited: 1 stays open for it
//
// One unit is open at a time, or a batch: as many of them as fit one chunk together
// (formula 1). They are loaded, given and gone through as if they were one, by those who need
// them: a grid has many blocks that are too small for a device's reads, and for messages. What
// follows says "unit" for both. Who asks and needs it gets it; who asks and does not
// is suspended. The next one is opened when nobody needs this one any more, except those
// who are late (stall_budget.h says who): they take it, or what else is open, when they
// ask again, and what they missed in a later round. So a unit is loaded once a
// round, a job may come at any place of the order, and a sweep that begins while 5 is
// open begins with 5.
//
// While no core is free, an open unit is given out when all who need it have
// asked: they then go through its chunks together (chunk_scheduler.h). While one is free,
// nobody is kept from using it.
//
// Where a partition has several units, a job goes through those that it needs from the first to the
// last, and through none of another partition meanwhile: its engine sees one partition. So who comes
// in the middle of one begins with the next, and who was late in the middle waits for its next unit.
//
// Pure bookkeeping, no clock. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "adapters/share/schedule/load_order.h"
#include "adapters/share/schedule/partition_set.h"

namespace graphlane::share {

using JobId = uint32_t;

class GlobalTable {
 public:
  // Of `batch_bytes` together, and kBatchMax, at most; where sizes are not known: one each.
  struct Batching {
    std::vector<uint64_t> unit_bytes;  // empty: not known
    uint64_t batch_bytes = 0;
    uint64_t ahead_bytes = 0;  // about as much follows the open batch into memory
    LoadOrder order = LoadOrder::kPriority;
    // The first one of the same partition, of each; empty: each is a partition of its own.
    std::vector<uint32_t> first_of_same;
    uint32_t first_of(uint32_t p) const { return first_of_same.empty() ? p : first_of_same[p]; }
    uint64_t size_of(uint32_t p) const { return unit_bytes.empty() ? 0 : unit_bytes[p]; }
  };
  static constexpr size_t kBatchMax = 32;
  using Batch = std::vector<uint32_t>;

  GlobalTable(uint32_t unit_count, uint32_t core_count, Batching batching);
  GlobalTable(uint32_t unit_count, uint32_t core_count)
      : GlobalTable(unit_count, core_count, Batching()) {}

  void add_job(JobId job, uint32_t thread_count);
  void remove_job(JobId job);

  // The units of the job's next iteration. `within`: one that it is to go on with (it has had what lies
  // before it in its partition, of another coordinator).
  void begin_sweep(JobId job, PartitionSet active, std::optional<uint32_t> within = std::nullopt);
  // It does not want the rest of the partition that it is within.
  void leave_partition(JobId job);
  // The job is done with its unit, if it had one, and asks for another.
  void ask(JobId job);
  // Nobody waits for it, until it comes to the end of a sweep.
  void set_late(JobId job);
  // Nobody waits for it to begin its next sweep.
  void stop_gathering(JobId job) { jobs_.at(job).gathered = false; }

  // The job does not wait any more, though it was given nothing.
  void take_back(JobId job) { jobs_.at(job).state = State::kComputes; }

  void set_loaded(uint32_t unit, bool loaded);
  // It cannot be loaded. Those that wait and need it: they are to be told, and do not need
  // its partition any more. For others who need it, it is tried again when they ask.
  std::vector<JobId> give_up(uint32_t unit);

  struct Grant {
    Batch units;  // each job has those of them that it needs, reads() says which
    std::vector<JobId> jobs;
  };
  struct Step {
    std::vector<Grant> grants;
    std::vector<JobId> ended;  // these are through their sweep
  };
  // What has become possible. To be called after any of the above.
  Step step();

  // What is to be loaded, the most urgent first: what is not of the open batch, maybe
  // nothing, and of those after it. Not what cannot be, until somebody asks who needs it.
  std::vector<Batch> wanted() const;
  // Loaded, and of no use to anybody.
  PartitionSet unused() const;

  // Who keeps others waiting, by still computing or by not having begun its next sweep.
  struct Holders {
    std::vector<JobId> computing;
    std::vector<JobId> gathered;
  };
  Holders holders() const;

  bool waits(JobId job) const { return jobs_.at(job).state == State::kWaits; }
  bool needs(JobId job, uint32_t unit) const { return jobs_.at(job).needs.has(unit); }
  bool is_late(JobId job) const { return jobs_.at(job).late; }
  bool is_gathered(JobId job) const { return jobs_.at(job).gathered; }
  const Batch& reads(JobId job) const { return jobs_.at(job).reads; }
  const Batch& open() const { return open_; }
  // How often an order was made: what any job needs comes once in each.
  uint64_t round() const { return round_; }

 private:
  enum class State { kBetweenSweeps, kWaits, kComputes };

  struct Job {
    State state = State::kBetweenSweeps;
    uint32_t thread_count = 1;
    PartitionSet needs;
    std::optional<uint32_t> within;  // first_of() the partition that it has begun, and needs more of
    Batch reads;  // what it was given and has not asked after
    bool late = false;
    bool gathered = false;  // between sweeps, and soon back: worth waiting for
  };

  // Jobs that the order reckons with: those in a sweep, unless late and not asking.
  bool counts(const Job& job) const {
    return job.state == State::kWaits || (job.state == State::kComputes && !job.late);
  }
  PartitionSet needed() const;
  // Those of the batch that are its next ones.
  Batch takes(const Job& job, const Batch& batch) const;
  bool needs_open(const Job& job) const { return !takes(job, open_).empty(); }
  // Whether the unit is there, and of the partition that begins with `first`.
  bool is_of(uint32_t unit, uint32_t first) const {
    return unit < loaded_.partition_count() && batching_.first_of(unit) == first;
  }
  void forget_partition(Job& job, uint32_t first) const;
  // Where nothing is left of the partition that the job was within, it is no more.
  void settle(Job& job) const;
  std::vector<Batch> batches_of(const std::vector<uint32_t>& order) const;
  Batch open_next();
  std::vector<Batch> ahead() const;
  bool any_waits() const;
  uint32_t busy_threads() const;
  bool give_open(Step& step);

  const uint32_t core_count_;
  const Batching batching_;
  std::map<JobId, Job> jobs_;
  PartitionSet loaded_;
  PartitionSet given_up_;
  Batch open_;  // empty: none is
  std::vector<Batch> order_;
  uint64_t round_ = 0;
  size_t place_ = 0;  // in order_, of what follows the open batch
};

}  // namespace graphlane::share
