#include "adapters/share/schedule/global_table.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "adapters/share/schedule/load_order.h"

namespace graphlane::share {

GlobalTable::GlobalTable(uint32_t unit_count, uint32_t core_count, Batching batching)
    : core_count_(core_count),
      batching_(std::move(batching)),
      loaded_(unit_count),
      given_up_(unit_count) {}

void GlobalTable::add_job(JobId job, uint32_t thread_count) {
  assert(!jobs_.contains(job));
  jobs_[job] = {.thread_count = thread_count,
                .needs = PartitionSet(loaded_.partition_count()),
                .within = {},
                .reads = {}};
}

void GlobalTable::remove_job(JobId job) { jobs_.erase(job); }

void GlobalTable::begin_sweep(JobId job, PartitionSet active, std::optional<uint32_t> within) {
  Job& it = jobs_.at(job);
  it.needs = std::move(active);
  it.within.reset();
  if (within) it.within = batching_.first_of(*within);
  settle(it);
  it.gathered = false;
}

void GlobalTable::leave_partition(JobId job) {
  Job& it = jobs_.at(job);
  if (!it.within) return;
  forget_partition(it, *it.within);
}

void GlobalTable::forget_partition(Job& job, uint32_t first) const {
  for (uint32_t p = job.needs.next(first); is_of(p, first); p = job.needs.next(p + 1)) {
    job.needs.remove(p);
  }
  settle(job);
}

void GlobalTable::settle(Job& job) const {
  if (job.within && !is_of(job.needs.next(*job.within), *job.within)) job.within.reset();
}

void GlobalTable::ask(JobId job) {
  Job& it = jobs_.at(job);
  it.state = State::kWaits;
  it.reads.clear();
  given_up_.remove_all(it.needs);
}

void GlobalTable::set_late(JobId job) { jobs_.at(job).late = true; }

void GlobalTable::set_loaded(uint32_t unit, bool loaded) {
  loaded ? loaded_.add(unit) : loaded_.remove(unit);
}

std::vector<JobId> GlobalTable::give_up(uint32_t unit) {
  given_up_.add(unit);
  std::vector<JobId> waited;
  for (auto& [id, job] : jobs_) {
    if (job.state != State::kWaits || !job.needs.has(unit)) continue;
    forget_partition(job, batching_.first_of(unit));
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
  // Opens one unit after the other until one must wait: for its load, or for a job that still needs
  // it. Stops as well when no job waits.
  for (;;) {
    if (open_.empty()) open_ = open_next();
    if (open_.empty()) return step;
    if (give_open(step)) continue;
    if (!any_waits()) return step;
    for (const auto& [id, job] : jobs_) {
      if (job.gathered || (counts(job) && needs_open(job))) return step;
    }
    open_.clear();
  }
}

// Grants the open unit to the jobs that wait for it; false: nothing was granted.
bool GlobalTable::give_open(Step& step) {
  Grant grant{.units = open_, .jobs = {}};
  bool all_asked = true;
  for (const auto& [id, job] : jobs_) {
    if (!counts(job)) continue;
    const Batch taken = takes(job, open_);
    if (taken.empty()) continue;
    for (const uint32_t p : taken) {
      if (!loaded_.has(p)) return false;
    }
    if (job.state == State::kWaits) {
      grant.jobs.push_back(id);
    } else {
      all_asked = false;
    }
  }
  if (grant.jobs.empty() || (!all_asked && busy_threads() >= core_count_)) return false;
  for (const JobId id : grant.jobs) {
    Job& job = jobs_.at(id);
    job.state = State::kComputes;
    job.reads = takes(job, open_);
    for (const uint32_t p : job.reads) job.needs.remove(p);
    job.within = batching_.first_of(job.reads.back());
    settle(job);
  }
  step.grants.push_back(std::move(grant));
  return true;
}

std::vector<GlobalTable::Batch> GlobalTable::wanted() const {
  PartitionSet taken(loaded_.partition_count());
  for (const auto& [id, job] : jobs_) {
    if (!counts(job)) continue;
    for (const uint32_t p : takes(job, open_)) taken.add(p);
  }
  std::vector<Batch> wanted = ahead();
  wanted.insert(wanted.begin(), open_);
  std::erase_if(wanted[0], [&](uint32_t p) { return !taken.has(p); });
  for (Batch& batch : wanted) {
    std::erase_if(batch, [&](uint32_t p) { return loaded_.has(p) || given_up_.has(p); });
  }
  return wanted;
}

PartitionSet GlobalTable::unused() const {
  PartitionSet unused = loaded_;
  for (const auto& [id, job] : jobs_) {
    for (const uint32_t p : job.reads) unused.remove(p);
  }
  if (jobs_.empty()) return unused;
  // The open unit stays while its jobs are between sweeps, because they begin with it.
  for (const uint32_t p : open_) unused.remove(p);
  for (const Batch& batch : ahead()) {
    for (const uint32_t p : batch) unused.remove(p);
  }
  return unused;
}

GlobalTable::Holders GlobalTable::holders() const {
  Holders holders;
  if (open_.empty() || !any_waits()) return holders;
  // While the open unit is loading for a waiting job, no other job holds it up.
  for (const auto& [id, job] : jobs_) {
    if (job.state != State::kWaits) continue;
    for (const uint32_t p : takes(job, open_)) {
      if (!loaded_.has(p)) return holders;
    }
  }
  for (const auto& [id, job] : jobs_) {
    if (job.gathered) holders.gathered.push_back(id);
    if (job.state == State::kComputes && !job.late && needs_open(job)) {
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

GlobalTable::Batch GlobalTable::takes(const Job& job, const Batch& batch) const {
  Batch taken;
  std::optional<uint32_t> within = job.within;
  uint32_t from = within.value_or(0);  // the earliest unit that the job may take next
  for (const uint32_t p : batch) {
    const uint32_t first = batching_.first_of(p);
    if (within != first) {
      if (within) continue;
      from = first;
    }
    if (job.needs.next(from) != p) continue;
    taken.push_back(p);
    from = p + 1;
    within = is_of(job.needs.next(from), first) ? std::optional(first) : std::nullopt;
  }
  return taken;
}

std::vector<GlobalTable::Batch> GlobalTable::batches_of(const std::vector<uint32_t>& order) const {
  std::vector<Batch> batches;
  uint64_t bytes = 0;  // of the last batch
  for (const uint32_t p : order) {
    const uint64_t size_bytes = batching_.size_of(p);
    bytes += size_bytes;
    if (batches.empty() || bytes > batching_.batch_bytes || size_bytes == 0 ||
        batches.back().size() == kBatchMax) {
      batches.emplace_back();
      bytes = size_bytes;
    }
    batches.back().push_back(p);
  }
  return batches;
}

GlobalTable::Batch GlobalTable::open_next() {
  const PartitionSet needed = this->needed();
  for (; place_ < order_.size(); ++place_) {
    Batch batch = order_[place_];
    std::erase_if(batch, [&](uint32_t p) { return !needed.has(p); });
    if (batch.empty()) continue;
    ++place_;
    return batch;
  }
  // A new round with a new order.
  ++round_;
  std::vector<const PartitionSet*> needs;
  for (const auto& [id, job] : jobs_) {
    if (counts(job)) needs.push_back(&job.needs);
  }
  order_ = batches_of(
      load_order(needs, loaded_.partition_count(), batching_.order, batching_.first_of_same));
  place_ = 0;
  if (order_.empty()) return {};
  return order_[place_++];
}

// The batches to prefetch; at least one if the order has any.
std::vector<GlobalTable::Batch> GlobalTable::ahead() const {
  const PartitionSet needed = this->needed();
  std::vector<Batch> ahead;
  uint64_t bytes = 0;
  for (size_t i = place_;
       i < order_.size() && (ahead.empty() || (bytes > 0 && bytes < batching_.ahead_bytes)); ++i) {
    Batch batch = order_[i];
    std::erase_if(batch, [&](uint32_t p) { return !needed.has(p); });
    if (batch.empty()) continue;
    for (const uint32_t p : batch) bytes += batching_.size_of(p);
    ahead.push_back(std::move(batch));
  }
  return ahead;
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
