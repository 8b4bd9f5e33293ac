#include "adapters/share/global_table.h"

#include <cassert>
#include <utility>

#include "adapters/share/load_order.h"

namespace graphlane::share {

void GlobalTable::add_job(JobId job, uint32_t thread_count) {
  assert(!jobs_.contains(job));
  jobs_[job] = {.thread_count = thread_count, .needs = PartitionSet(loaded_.partition_count()),
                .reads = std::nullopt};
}

void GlobalTable::remove_job(JobId job) { jobs_.erase(job); }

void GlobalTable::begin_sweep(JobId job, PartitionSet active) {
  Job& it = jobs_.at(job);
  it.needs = std::move(active);
  it.gathered = false;
}

void GlobalTable::ask(JobId job) {
  Job& it = jobs_.at(job);
  it.state = State::kWaits;
  it.reads.reset();
}

void GlobalTable::set_late(JobId job) { jobs_.at(job).late = true; }

void GlobalTable::set_loaded(uint32_t partition, bool loaded) {
  loaded ? loaded_.add(partition) : loaded_.remove(partition);
}

std::vector<JobId> GlobalTable::give_up(uint32_t partition) {
  std::vector<JobId> waited;
  for (auto& [id, job] : jobs_) {
    if (job.state != State::kWaits || !job.needs.has(partition)) continue;
    job.needs.remove(partition);
    waited.push_back(id);
  }
  return waited;
}

GlobalTable::Step GlobalTable::step() {
  Step step;
  for (auto& [id, job] : jobs_) {
    if (job.state != State::kWaits || !job.needs.empty()) continue;
    job.state = State::kBetweenSweeps;
    job.late = false;
    job.gathered = true;
    step.ended.push_back(id);
  }
  // Opens one partition after the other until somebody waits for a load, for a job
  // that still needs the open one, or nobody waits at all.
  for (;;) {
    if (!open_ && !(open_ = open_next())) return step;
    if (give_open(step)) continue;
    if (!any_waits()) return step;
    for (const auto& [id, job] : jobs_) {
      if (job.gathered || (counts(job) && job.needs.has(*open_))) return step;
    }
    open_.reset();
  }
}

// To those who wait for the open partition; false: nothing was to be given.
bool GlobalTable::give_open(Step& step) {
  if (!loaded_.has(*open_)) return false;
  Grant grant{.partition = *open_, .jobs = {}};
  bool all_asked = true;
  for (const auto& [id, job] : jobs_) {
    if (!counts(job) || !job.needs.has(*open_)) continue;
    if (job.state == State::kWaits) grant.jobs.push_back(id);
    else all_asked = false;
  }
  if (grant.jobs.empty() || (!all_asked && busy_threads() >= core_count_)) return false;
  for (const JobId id : grant.jobs) {
    Job& job = jobs_.at(id);
    job.state = State::kComputes;
    job.needs.remove(*open_);
    job.reads = open_;
  }
  step.grants.push_back(std::move(grant));
  return true;
}

std::vector<uint32_t> GlobalTable::wanted() const {
  std::vector<uint32_t> wanted;
  if (open_ && !loaded_.has(*open_) && needed().has(*open_)) wanted.push_back(*open_);
  if (const auto next = peek_next(); next && !loaded_.has(*next)) wanted.push_back(*next);
  return wanted;
}

PartitionSet GlobalTable::unused() const {
  PartitionSet unused = loaded_;
  for (const auto& [id, job] : jobs_) {
    if (job.reads) unused.remove(*job.reads);
  }
  if (jobs_.empty()) return unused;
  // The open one stays while its jobs are between sweeps: they begin with it.
  if (open_) unused.remove(*open_);
  if (const auto next = peek_next()) unused.remove(*next);
  return unused;
}

GlobalTable::Holders GlobalTable::holders() const {
  Holders holders;
  if (!open_ || !any_waits()) return holders;
  // While it is loaded for somebody who waits for it, nobody else is to blame.
  for (const auto& [id, job] : jobs_) {
    if (!loaded_.has(*open_) && job.state == State::kWaits && job.needs.has(*open_)) return holders;
  }
  for (const auto& [id, job] : jobs_) {
    if (job.gathered) holders.gathered.push_back(id);
    if (job.state == State::kComputes && !job.late && job.needs.has(*open_)) {
      holders.computing.push_back(id);
    }
  }
  return holders;
}

PartitionSet GlobalTable::needed() const {
  PartitionSet needed(loaded_.partition_count());
  for (const auto& [id, job] : jobs_) {
    if (counts(job)) needed.add_all(job.needs);
  }
  return needed;
}

std::optional<uint32_t> GlobalTable::open_next() {
  const PartitionSet needed = this->needed();
  for (; place_ < order_.size(); ++place_) {
    if (needed.has(order_[place_])) return order_[place_++];
  }
  // The next round, in an order of its own.
  std::vector<const PartitionSet*> needs;
  for (const auto& [id, job] : jobs_) {
    if (counts(job)) needs.push_back(&job.needs);
  }
  order_ = load_order(needs, loaded_.partition_count());
  place_ = 0;
  if (order_.empty()) return std::nullopt;
  return order_[place_++];
}

std::optional<uint32_t> GlobalTable::peek_next() const {
  const PartitionSet needed = this->needed();
  for (size_t i = place_; i < order_.size(); ++i) {
    if (needed.has(order_[i])) return order_[i];
  }
  return std::nullopt;
}

bool GlobalTable::any_waits() const {
  for (const auto& [id, job] : jobs_) {
    if (job.state == State::kWaits) return true;
  }
  return false;
}

uint32_t GlobalTable::busy_threads() const {
  uint32_t count = 0;
  for (const auto& [id, job] : jobs_) {
    if (job.state == State::kComputes && !job.late) count += job.thread_count;
  }
  return count;
}

}  // namespace graphlane::share
