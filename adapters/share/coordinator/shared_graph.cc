#include "adapters/share/coordinator/shared_graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "adapters/share/memory/sealed_memory.h"
#include "iomgr/base/futex.h"

namespace graphlane::share {
namespace {

// How long other jobs wait for a job to begin its next sweep. It saves a round of loads when jobs
// keep step, and is short beside a sweep of a graph that does not fit memory.
constexpr uint64_t kGatherNs = 30'000'000;
// The memory of a unit's tables, as measured with 2^20 of them; and the units per byte of a job's
// sets.
constexpr uint64_t kUnitTableBytes = 256;
constexpr uint64_t kUnitsPerJobByte = 4;

}  // namespace

Result<void> send_refusal(int socket, const Error& error) {
  const RefusalMessage head{.error = error.code};
  const std::string_view reason =
      std::string_view(error.text).substr(0, kMessageBytesMax - sizeof head);
  return send_head(socket, head, reason, {}, MSG_DONTWAIT);
}

SharedGraph::SharedGraph(GraphFiles files, std::shared_ptr<LabelKeeper> labels, Worker& worker,
                         const Options& options)
    : options_(options),
      files_(std::make_shared<const GraphFiles>(std::move(files))),
      least_bytes_(least()),
      worker_(worker),
      labels_(std::move(labels)),
      table_(unit_count(), options.core_count, options.batching),
      buffers_(unit_count(), options.part_bytes, options.buffer_count_max),
      unit_bytes_(files_->units.bytes()) {}

uint64_t SharedGraph::least() const {
  const std::vector<uint64_t>& sizes = files_->units.bytes();
  if (resident()) return std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
  return std::max(std::ranges::max(sizes), options_.batching.batch_bytes);
}

uint64_t SharedGraph::table_bytes_of(const Layout& layout, uint64_t unit_count) {
  return layout.ranges.size() * sizeof(FileRange) + unit_count * kUnitTableBytes;
}

uint64_t SharedGraph::table_bytes() const {
  if (!options_.charged_to) return 0;
  return table_bytes_of(files_->layout, unit_count()) + jobs_.size() * job_bytes() +
         snapshots_.bytes() + (labels_ ? labels_->bytes() : 0);
}

uint64_t SharedGraph::job_bytes() const {
  return options_.charged_to ? unit_count() / kUnitsPerJobByte : 0;
}

void SharedGraph::set_budget(uint64_t bytes) {
  buffers_.set_budget(bytes);
  (void)make_room(0, 0, false);
}

// --- requests of jobs -----------------------------------------------------------

void SharedGraph::attach(const ChunkScheduler::Member& member, int socket, uid_t user) {
  const JobId id = member.job;
  Job& job = jobs_[id];
  job.socket = socket;
  job.user = user;
  job.member = member;
  job.version = snapshots_.newest_version();
  job.given = PartitionSet(unit_count());
  table_.add_job(id, member.thread_count);
  const auto known = access_ps_.find(user);
  std::string updated;
  if (const std::vector<uint32_t> list = snapshots_.updated_partitions(job.version);
      !list.empty()) {
    PartitionSet set(files_->units.partition_count());
    for (const uint32_t p : list) set.add(p);
    updated.assign(reinterpret_cast<const char*>(set.words().data()), set.words().size_bytes());
  }
  tell(id,
       WelcomeMessage{.resident = resident(),
                      .version = job.version,
                      .chunk_bytes = options_.chunk_bytes,
                      .unit_bytes = files_->units.unit_bytes(),
                      .access_ps = known == access_ps_.end() ? 0 : known->second},
       updated);
}

void SharedGraph::detach(JobId id) {
  // The job is missing if attach() ran out of memory.
  if (const auto job = jobs_.find(id); job != jobs_.end()) {
    leave_group(job->second, id, monotonic_ns());
  }
  table_.remove_job(id);
  jobs_.erase(id);
  std::multiset<uint64_t> versions;
  for (const auto& [other, job] : jobs_) versions.insert(job.version);
  snapshots_.keep_for(versions);
  if (!jobs_.empty()) return;
  release_all(table_.unused());
  packed_.clear();
}

bool SharedGraph::sweep(JobId id, PartitionSet active, const SweepMessage& message) {
  Job& job = jobs_.at(id);
  if (table_.waits(id) || (message.within != kNoUnit && message.within >= unit_count())) {
    return false;
  }
  if (message.wants_labels != 0 && labels_) {
    job.labels_wanted = true;
    labels_->want(worker_);
  }
  if (!table_.reads(id).empty()) leave_group(job, id, monotonic_ns());
  const bool goes_on = message.within != kNoUnit;
  table_.begin_sweep(id, std::move(active), goes_on ? std::optional(message.within) : std::nullopt);
  job.gathered_until_ns = 0;
  return true;
}

bool SharedGraph::next(JobId id, const NextMessage& message) {
  Job& job = jobs_.at(id);
  if (table_.waits(id)) return false;
  if (message.access_ps != 0) access_ps_[job.user] = message.access_ps;
  leave_group(job, id, monotonic_ns());
  if (message.leaves_partition != 0) table_.leave_partition(id);
  table_.ask(id);
  return true;
}

bool SharedGraph::loaded(JobId id, const LoadedMessage& message, Fd memory) {
  Job& job = jobs_.at(id);
  if (job.loading != message.partition) return false;
  job.loading.reset();
  if (std::exchange(job.overdue_loading, false)) table_.ask(id);
  if (buffers_.find(message.partition) != nullptr) return true;  // another job loaded it first
  if (message.error != 0) {
    if (!table_.waits(id)) return true;  // it loaded ahead, and already has its answer
    refuse(id, make_error(message.error, "{}: partition {}: the loader failed", files_->name,
                          message.partition));
    table_.take_back(id);
    return true;
  }
  const Result<uint64_t> size_bytes = memory ? sealed_size(memory.get()) : Errno{EPERM};
  if (!size_bytes) return false;
  if (*size_bytes > options_.budget_bytes) {
    fail(message.partition,
         make_error(EFBIG, "{}: partition {} has {} bytes, the buffers' budget is {}", files_->name,
                    message.partition, *size_bytes, options_.budget_bytes));
    return true;
  }
  // A loader's size is known only now, so the room may not suffice.
  (void)make_room(*size_bytes, 1, true);
  buffers_.reserve(message.partition, *size_bytes);
  count_load(*size_bytes);
  store(message.partition, std::move(memory), *size_bytes);
  return true;
}

bool SharedGraph::turn(JobId id, const TurnMessage& message) {
  Job& job = jobs_.at(id);
  if (table_.reads(id).empty()) return false;
  // Chunks must advance: asking twice for one would renew the lease without end.
  if (job.turn_chunk && message.chunk <= *job.turn_chunk) return false;
  job.turn_chunk = message.chunk;
  job.turn = message;
  if (job.group) {
    job.group->ask(id, message.chunk, message.process_ns);
  } else {
    // A job outside a group takes no turns. The message only renews its lease.
    job.stall_budget.lease(monotonic_ns(), message.process_ns + message.access_ns);
    if (!job.alone) tell(id, TurnGivenMessage{.thread_count = job.member.thread_count_min});
  }
  return true;
}

bool SharedGraph::done(JobId id) {
  Job& job = jobs_.at(id);
  if (table_.reads(id).empty()) return false;
  const uint64_t now_ns = monotonic_ns();
  job.stall_budget.set_holding(now_ns, false);
  job.stall_budget.end_lease(now_ns);
  if (job.group) job.group->done(id);
  return true;
}

Outcome<uint64_t> SharedGraph::update(uint32_t partition, uint32_t chunk, Fd memory) {
  const Units& units = files_->units;
  if (partition >= units.partition_count()) {
    return make_error(EINVAL, "{}: partition {} of {}", files_->name, partition,
                      units.partition_count());
  }
  const uint32_t last = units.end_of(partition) - 1;
  const uint64_t partition_bytes = units.offset_of(last) + unit_bytes_[last];
  const uint64_t count = std::max(chunk_count_of(partition_bytes, options_.chunk_bytes),
                                  snapshots_.chunk_end(partition));
  if (chunk > count) {
    return make_error(EINVAL, "{}: partition {}: chunk {} of {}", files_->name, partition, chunk,
                      count);
  }
  const Result<uint64_t> size_bytes = sealed_size(memory.get());
  if (!size_bytes) return make_error(EPERM, "{}: an update must be sealed", files_->name);
  if (snapshots_.bytes() + *size_bytes > options_.budget_bytes) {
    return make_error(ENOSPC, "{}: the updates are larger than the buffers' budget of {} bytes",
                      files_->name, options_.budget_bytes);
  }
  auto bytes = Mapping::of_sealed(memory.get(), *size_bytes);
  if (!bytes) return bytes.error();
  if (auto updated = snapshots_.update(partition, chunk, bytes->bytes()); !updated) {
    return updated.error();
  }
  std::multiset<uint64_t> versions;
  for (const auto& [id, job] : jobs_) versions.insert(job.version);
  snapshots_.keep_for(versions);
  return snapshots_.newest_version();
}

StatisticsMessage SharedGraph::statistics() const {
  StatisticsMessage counts = counts_;
  counts.job_count = static_cast<uint32_t>(jobs_.size());
  counts.buffer_bytes = buffers_.used_bytes();
  counts.buffer_bytes_max = buffers_.used_bytes_max();
  counts.overlay_bytes = snapshots_.bytes();
  counts.labelled_partitions = labels_ ? labels_->labelled_count() : 0;
  return counts;
}

// --- scheduling -----------------------------------------------------------------

uint64_t SharedGraph::pump(uint64_t now_ns) {
  do {
    for (GlobalTable::Step step = table_.step(); !step.grants.empty() || !step.ended.empty();
         step = table_.step()) {
      for (const JobId id : step.ended) {
        jobs_.at(id).stall_budget.reset();
        tell(id, PlainMessage{Kind::kSweepEnd});
      }
      for (const GlobalTable::Grant& grant : step.grants) give(grant);
    }
    retire_unused();
    load_wanted(now_ns);
    label_loaded();
    give_turns(now_ns);
  } while (mark_late_jobs(now_ns));
  return next_deadline_ns(now_ns);
}

void SharedGraph::give(const GlobalTable::Grant& grant) {
  const bool alone = grant.jobs.size() == 1;
  std::shared_ptr<ChunkScheduler> group;
  if (!alone) {
    // A late job goes alone, so that a further stall of it holds no other job up.
    std::vector<ChunkScheduler::Member> members;
    for (const JobId id : grant.jobs) {
      if (!table_.is_late(id)) members.push_back(jobs_.at(id).member);
    }
    group = std::make_shared<ChunkScheduler>(members, options_.core_count);
  }
  for (const JobId id : grant.jobs) {
    jobs_.at(id).alone = alone;
    jobs_.at(id).turn_chunk.reset();
    jobs_.at(id).group = table_.is_late(id) ? nullptr : group;
    give_buffers(id, alone, grant.units.size() > 1);
  }
}

void SharedGraph::give_buffers(JobId id, bool alone, bool one_turn) {
  static_assert(2 * GlobalTable::kBatchMax + 1 <= kMessageFdsMax,
                "memory and overlay of each, and labels");
  Job& job = jobs_.at(id);
  const GlobalTable::Batch& batch = table_.reads(id);
  UnitsMessage message{
      .count = static_cast<uint32_t>(batch.size()), .alone = alone, .one_turn = one_turn};
  std::vector<GivenUnit> given;
  std::vector<int> fds;
  for (const uint32_t unit : batch) {
    const Buffer& buffer = *buffers_.find(unit);
    given.push_back({.unit = unit, .size_bytes = buffer.size_bytes});
    if (!job.given.has(unit)) {
      given.back().has_memory = 1;
      fds.push_back(buffer.memory.get());
      if (resident()) job.given.add(unit);
    }
    if (const Fd* overlay = snapshots_.overlay(files_->units.partition_of(unit), job.version)) {
      given.back().has_overlay = 1;
      fds.push_back(overlay->get());
    }
    ++counts_.given_partitions;
    counts_.given_bytes += buffer.size_bytes;
  }
  if (job.labels_wanted && !job.labels_given && labels_ && labels_->memory() >= 0) {
    job.labels_given = true;
    message.has_labels = 1;
    fds.push_back(labels_->memory());
  }
  tell(id, message, {reinterpret_cast<const char*>(given.data()), given.size() * sizeof given[0]},
       fds);
}

void SharedGraph::give_turns(uint64_t now_ns) {
  std::set<ChunkScheduler*> groups;
  for (auto& [id, job] : jobs_) {
    if (!job.group) continue;
    if (!job.stall_budget.leased(now_ns)) job.group->overdue(id);
    groups.insert(job.group.get());
  }
  for (ChunkScheduler* group : groups) {
    for (const ChunkScheduler::Turn& turn : group->step()) {
      Job& job = jobs_.at(turn.job);
      const uint64_t expected_ns =
          job.turn.process_ns + (turn.first && job.turn.process_ns > 0 ? job.turn.access_ns : 0);
      job.stall_budget.lease(now_ns, expected_ns / turn.thread_count);
      ++counts_.turns;
      tell(turn.job, TurnGivenMessage{.thread_count = turn.thread_count});
    }
  }
}

// --- late jobs ------------------------------------------------------------------

std::set<JobId> SharedGraph::holders() const {
  std::set<JobId> holders;
  std::set<const ChunkScheduler*> groups;
  for (const JobId id : table_.holders().computing) holders.insert(id);
  for (const auto& [id, job] : jobs_) {
    if (job.group) groups.insert(job.group.get());
    if (blocked_by_budget_ && !table_.reads(id).empty() && !table_.is_late(id)) holders.insert(id);
  }
  for (const ChunkScheduler* group : groups) {
    for (const JobId id : group->holders()) holders.insert(id);
  }
  // A job that waits for its turn does not hold others up.
  std::erase_if(holders, [&](JobId id) {
    const Job& job = jobs_.at(id);
    return job.group && job.group->waits(id);
  });
  return holders;
}

// Marks jobs that have used up their stall budget as late. True: others may now go on.
bool SharedGraph::mark_late_jobs(uint64_t now_ns) {
  bool changed = false;
  const std::set<JobId> holding = holders();
  for (auto& [id, job] : jobs_) {
    job.stall_budget.set_holding(now_ns, holding.contains(id));
    if (!holding.contains(id) || !job.stall_budget.exhausted(now_ns) || table_.is_late(id)) {
      continue;
    }
    table_.set_late(id);
    leave_group(job, id, now_ns);
    ++counts_.late;
    changed = true;
  }
  for (const JobId id : table_.holders().gathered) {
    Job& job = jobs_.at(id);
    if (job.gathered_until_ns == 0) job.gathered_until_ns = now_ns + kGatherNs;
    if (now_ns < job.gathered_until_ns) continue;
    table_.stop_gathering(id);
    changed = true;
  }
  return changed;
}

void SharedGraph::leave_group(Job& job, JobId id, uint64_t now_ns) {
  if (job.group) job.group->leave(id);
  job.group.reset();
  job.stall_budget.end_lease(now_ns);
}

uint64_t SharedGraph::next_deadline_ns(uint64_t now_ns) const {
  uint64_t deadline_ns = UINT64_MAX;
  const auto at = [&](uint64_t when_ns) {
    if (when_ns > now_ns) deadline_ns = std::min(deadline_ns, when_ns);
  };
  for (const auto& [id, job] : jobs_) {
    at(job.stall_budget.exhausted_at_ns() == UINT64_MAX ? 0 : job.stall_budget.exhausted_at_ns());
    if (job.group) at(job.stall_budget.lease_end_ns());
    if (table_.is_gathered(id)) at(job.gathered_until_ns);
    if (job.loading) at(job.loading_until_ns);
  }
  return deadline_ns;
}

// --- messages -----------------------------------------------------------------

void SharedGraph::refuse(JobId id, const Error& error) {
  if (!send_refusal(jobs_.at(id).socket, error)) unresponsive_.push_back(id);
}

}  // namespace graphlane::share
