// GlobalTable: which job needs which unit, and which unit is open: GraphM's algorithm 2 without its
// memory and its messages.
//
//   order   | 4 | 0 | 1 | 7 | 2 | …            by formula 5, anew for each round
//                     ▲ open
//   job a   needs 1 2 7     waits              ──▶ gets 1
//   job b   needs   2       waits              suspended until 2 is open
//   job c   needs 1         computes on 0      1 stays open until c asks
//
// One unit is open at a time, or a batch: as many units as fit one chunk together (formula 1). The
// units of a batch are loaded, granted and read as one, by the jobs that need them. Many blocks of
// a grid are too small to be worth a device's read or a message each. Below, "unit" means both.
//
// A job that asks gets the open unit if it needs it, and is suspended if not. The next unit opens
// when no job needs the open one any more. Late jobs (stall_budget.h) do not count: they take the
// unit that is open when they ask again, and what they missed in a later round. So a unit is loaded
// once a round, and a job may join at any place of the order: a sweep that begins while unit 5 is
// open begins with 5.
//
// While no core is free, the open unit is granted once all jobs that need it have asked. They then
// go through its chunks together (chunk_scheduler.h). While a core is free, a job that asks gets it
// at once.
//
// If a partition has several units, a job goes through those that it needs in order, and through no
// other partition meanwhile, because its engine sees one partition. So a job that joins in the
// middle of a partition begins with the next one. A job that fell behind in the middle waits for
// its next unit.
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
  // A batch has at most `batch_bytes` and kBatchMax units. Units of unknown size get one each.
  struct Batching {
    std::vector<uint64_t> unit_bytes;  // empty: unknown
    uint64_t batch_bytes = 0;
    uint64_t ahead_bytes = 0;  // prefetched beyond the open batch, about
    LoadOrder order = LoadOrder::kPriority;
    // For each unit the first one of its partition; empty: each unit is a partition.
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

  // Sets the units of the job's next sweep. `within`: the unit with which it resumes a partition,
  // of which another coordinator gave it the units before.
  void begin_sweep(JobId job, PartitionSet active, std::optional<uint32_t> within = std::nullopt);
  // The job drops the rest of the partition that it has begun.
  void leave_partition(JobId job);
  // The job has finished its unit, if it had one, and waits for another.
  void ask(JobId job);
  // Other jobs do not wait for it until its sweep ends.
  void set_late(JobId job);
  // Other jobs do not wait for it to begin its next sweep.
  void stop_gathering(JobId job) { jobs_.at(job).gathered = false; }

  // The job no longer waits, though it was granted nothing.
  void take_back(JobId job) { jobs_.at(job).state = State::kComputes; }

  void set_loaded(uint32_t unit, bool loaded);
  // Loading failed. Returns the waiting jobs that needed the unit: the caller tells them, and they
  // no longer need its partition. For other jobs it is tried again when they ask.
  std::vector<JobId> give_up(uint32_t unit);

  struct Grant {
    Batch units;  // each job has those that it needs: see reads()
    std::vector<JobId> jobs;
  };
  struct Step {
    std::vector<Grant> grants;
    std::vector<JobId> ended;  // their sweeps are over
  };
  // The steps that are possible now. Call it after any of the above.
  Step step();

  // The batches to load, the most urgent first: the missing units of the open batch, which may be
  // none, then those after it. Skips units that failed to load, until a job that needs them asks.
  std::vector<Batch> wanted() const;
  // Loaded units that no job reads or is about to read.
  PartitionSet unused() const;

  // The jobs that hold others up: still computing, or between sweeps.
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
  // The number of orders made so far. Every needed unit comes once in each.
  uint64_t round() const { return round_; }

 private:
  enum class State { kBetweenSweeps, kWaits, kComputes };

  struct Job {
    State state = State::kBetweenSweeps;
    uint32_t thread_count = 1;
    PartitionSet needs;
    std::optional<uint32_t> within;  // first_of() the partition that it has begun and not finished
    Batch reads;                     // the units granted last
    bool late = false;
    bool gathered = false;  // between sweeps, and worth waiting for
  };

  // Whether the order considers the job: it is in a sweep, and waits or is not late.
  bool counts(const Job& job) const {
    return job.state == State::kWaits || (job.state == State::kComputes && !job.late);
  }
  PartitionSet needed() const;
  // The units of the batch that the job would get.
  Batch takes(const Job& job, const Batch& batch) const;
  bool needs_open(const Job& job) const { return !takes(job, open_).empty(); }
  // Whether the unit exists and belongs to the partition that begins with `first`.
  bool is_of(uint32_t unit, uint32_t first) const {
    return unit < loaded_.partition_count() && batching_.first_of(unit) == first;
  }
  void forget_partition(Job& job, uint32_t first) const;
  // Resets `within` if the job needs nothing more of that partition.
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
  size_t place_ = 0;  // in order_, of the batch after the open one
};

}  // namespace graphlane::share
