#include "adapters/share/job.h"

#include <algorithm>
#include <utility>

#include "iomgr/base/futex.h"

namespace graphlane::share {
namespace {

constexpr int kReattachTries = 8;

std::string_view bytes_of(const PartitionSet& set) {
  return {reinterpret_cast<const char*>(set.words().data()), set.words().size_bytes()};
}

}  // namespace

Outcome<std::unique_ptr<Job>> Job::open(JobOptions options) {
  std::unique_ptr<Job> job(new Job(std::move(options)));
  if (Outcome<void> opened = job->link_.open(); !opened) return opened.error();
  job->profile_ = Profile(job->link_.access_ps());
  return job;
}

// --- a sweep ---------------------------------------------------------------------

Outcome<void> Job::begin_sweep(VertexBits active) {
  PartitionSet partitions(partition_count());
  active_ = active;
  const bool any = std::ranges::any_of(active, [](uint64_t word) { return word != 0; });
  for (uint32_t p = 0; any && p < partition_count(); ++p) {
    if (may_be_active(p)) partitions.add(p);
  }
  return begin_sweep_over(std::move(partitions));
}

Outcome<void> Job::begin_sweep(const PartitionSet& active) {
  active_ = {};
  return begin_sweep_over(active);
}

Outcome<void> Job::begin_sweep_over(PartitionSet partitions) {
  finish_partition();
  batch_ = {};
  for (uint32_t p = 0; p < partition_count(); ++p) {
    if (partitions.has(p) && is_empty(p)) partitions.remove(p);
  }
  remaining_ = std::move(partitions);
  sweeping_ = true;
  return send_sweep();
}

// Nothing to load and nothing to see.
bool Job::is_empty(uint32_t partition) const {
  return !link_.layout().by_loader && link_.partition_bytes()[partition] == 0 && !is_changed(partition);
}

bool Job::is_changed(uint32_t partition) const {
  if (link_.is_updated(partition)) return true;
  const auto mutated = mutated_.lower_bound({partition, 0});
  return mutated != mutated_.end() && mutated->first.first == partition;
}

// Whether a chunk has an edge from an active vertex. What the labels do not know may.
bool Job::may_be_active(uint32_t partition) const {
  if (!labels_ || is_changed(partition)) return true;
  for (uint32_t k = 0; k < labels_.chunk_count(partition); ++k) {
    if (any_active_edge(labels_.table(partition, k), active_)) return true;
  }
  return false;
}

// Without a coordinator, next() finds another one and tells that.
Outcome<void> Job::send_sweep() {
  if (!link_.connected()) return {};
  const SweepMessage sweep{.wants_labels = !active_.empty() && !labels_};
  Outcome<void> sent = link_.send(sweep, bytes_of(remaining_));
  return sent || link_.connected() ? sent : Outcome<void>();
}

Outcome<std::optional<uint32_t>> Job::next() {
  if (!sweeping_) {
    if (auto begun = begin_sweep(PartitionSet(partition_count(), true)); !begun) return begun.error();
  }
  finish_partition();
  if (!batch_.rest.empty()) {
    partition_ = std::move(batch_.rest.front());
    batch_.rest.pop_front();
    return std::optional(partition_->number);
  }
  Outcome<void> answered = ask_next();
  for (int i = 0; !answered && !link_.connected() && i < kReattachTries; ++i) {
    if (auto attached = reattach(); !attached) return attached.error();
    if (auto sent = send_sweep(); !sent) return sent.error();
    answered = ask_next();
  }
  if (!answered) return answered.error();
  if (partition_) return std::optional(partition_->number);
  sweeping_ = false;
  active_ = {};
  return std::optional<uint32_t>();
}

// Another coordinator has memory of its own, and maybe other chunks.
Outcome<void> Job::reattach() {
  kept_.clear();
  chunk_counts_.clear();
  if (auto attached = link_.reattach(!mutated_.empty()); !attached) return attached;
  if (labels_ && labels_.chunk_bytes() != link_.chunk_bytes()) labels_ = {};
  return {};
}

// Leaves the next partition in partition_, or nothing at the end.
Outcome<void> Job::ask_next() {
  NextMessage ask;
  if (profile_.costs().access_measured && !profile_told_) {
    ask.access_ps = profile_.costs().access_ps;
    profile_told_ = true;
  }
  if (Outcome<void> sent = link_.send(ask); !sent) return sent;
  for (;;) {
    auto message = link_.receive();
    if (!message) return message.error();
    switch (kind_of(*message)) {
      case Kind::kPartitions: {
        Outcome<void> taken = take_partitions(*message);
        if (!taken) link_.drop();  // it is told anew what the job has not had
        return taken;
      }
      case Kind::kSweepEnd: return {};
      case Kind::kLoad:
        if (auto loaded = serve_load(*message); !loaded) return loaded;
        break;
      default: return link_.confused();
    }
  }
}

Outcome<void> Job::take_partitions(Message& message) {
  const Error bad = make_error(EPROTO, "{}: its coordinator gave something else", link_.name());
  PartitionsMessage head;
  if (!message.read(head)) return bad;
  const std::string_view list = message.after(sizeof head);
  if (head.count == 0 || list.size() != size_t{head.count} * sizeof(GivenPartition)) return bad;
  std::vector<GivenPartition> given(head.count);
  std::memcpy(given.data(), list.data(), list.size());
  size_t fd_count = head.has_labels;
  for (const GivenPartition& it : given) {
    if (it.partition >= partition_count() || it.has_memory > 1 || it.has_overlay > 1) return bad;
    fd_count += it.has_memory + it.has_overlay;
  }
  if (message.fds.size() != fd_count) return bad;
  if (head.has_labels) {
    if (Outcome<void> taken = take_labels(message.fds.back().get()); !taken) return taken;
  }
  Batch batch{.rest = {}, .alone = head.alone != 0, .one_turn = head.one_turn != 0};
  std::span<const Fd> memory = message.fds;
  for (const GivenPartition& it : given) {
    auto partition = partition_of(it, memory);
    if (!partition) return partition.error();
    memory = memory.subspan(it.has_memory + it.has_overlay);
    if (const uint32_t edge_bytes = link_.layout().record.size_bytes) {
      batch.edge_count += it.size_bytes / edge_bytes;
    }
    batch.rest.push_back(std::move(*partition));
  }
  for (const GivenPartition& it : given) remaining_.remove(it.partition);
  partition_ = std::move(batch.rest.front());
  batch.rest.pop_front();
  batch_ = std::move(batch);
  return {};
}

Outcome<void> Job::take_labels(int memory) {
  const Error bad = make_error(EPROTO, "{}: its coordinator gave something else", link_.name());
  const Result<uint64_t> size_bytes = sealed_size(memory);
  if (!size_bytes) return bad;
  auto mapped = Mapping::of_sealed(memory, *size_bytes);
  if (!mapped) return mapped.error();
  label_memory_ = std::move(*mapped);
  auto labels = Labels::parse(label_memory_.bytes(), link_.graph_hash(), link_.chunk_bytes(),
                              link_.partition_bytes());
  if (!labels) return make_error(EPROTO, "{}: labels: {}", link_.name(), labels.error().text);
  labels_ = *labels;
  return {};
}

Outcome<Job::Partition> Job::partition_of(const GivenPartition& given, std::span<const Fd> memory) {
  auto bytes = memory_of(given, memory);
  if (!bytes) return bytes.error();
  Partition partition;
  partition.number = given.partition;
  partition.bytes = std::move(*bytes);
  uint64_t& chunk_count = chunk_counts_[given.partition];
  chunk_count = chunk_count_of(given.size_bytes, link_.chunk_bytes());
  if (!given.has_overlay) return partition;
  const int overlay = memory[given.has_memory].get();
  const Result<uint64_t> overlay_bytes = sealed_size(overlay);
  if (!overlay_bytes) return make_error(EPROTO, "{}: its coordinator gave something else", link_.name());
  auto mapped = Mapping::of_sealed(overlay, *overlay_bytes);
  if (!mapped) return mapped.error();
  partition.overlay = std::move(*mapped);
  auto updated = parse_overlay(partition.overlay.bytes());
  if (!updated) return updated.error();
  partition.updated = std::move(*updated);
  if (partition.updated.empty()) return partition;
  chunk_count = std::max(chunk_count, partition.updated.rbegin()->first + uint64_t{1});
  return partition;
}

Outcome<std::shared_ptr<const Mapping>> Job::memory_of(const GivenPartition& given,
                                                       std::span<const Fd> memory) {
  const Error bad = make_error(EPROTO, "{}: its coordinator gave something else", link_.name());
  if (!given.has_memory) {
    const auto kept = kept_.find(given.partition);
    return kept == kept_.end() ? Outcome<std::shared_ptr<const Mapping>>(bad) : kept->second;
  }
  const Result<uint64_t> size_bytes = sealed_size(memory[0].get());
  if (!size_bytes || *size_bytes != given.size_bytes) return bad;
  auto mapped = Mapping::of_sealed(memory[0].get(), given.size_bytes);
  if (!mapped) return mapped.error();
  auto bytes = std::make_shared<const Mapping>(std::move(*mapped));
  if (link_.resident()) kept_[given.partition] = bytes;
  return bytes;
}

void Job::finish_partition() {
  if (!partition_) return;
  barrier();
  profile_.add(partition_->active_edge_count, partition_->edge_count, partition_->thread_ns);
  partition_.reset();
}

// --- the loader --------------------------------------------------------------------

Outcome<void> Job::serve_load(const Message& message) {
  LoadMessage load;
  if (!message.read(load) || !link_.options().loader || load.partition >= partition_count()) {
    return make_error(EPROTO, "{}: asked to load what it cannot", link_.name());
  }
  LoadedMessage loaded{.partition = load.partition};
  const Outcome<Fd> memory = make_partition(load.partition);
  if (!memory) loaded.error = memory.error().code;
  const int fd = memory ? memory->get() : -1;
  return link_.send(loaded, {}, std::span(&fd, memory ? 1 : 0));
}

Outcome<Fd> Job::make_partition(uint32_t partition) const {
  const int64_t size_bytes = link_.options().loader(partition, nullptr, 0);
  if (size_bytes < 0) return make_error(static_cast<int>(-size_bytes), "the loader failed");
  auto memory = make_memory(static_cast<uint64_t>(size_bytes));
  if (!memory) return memory.error();
  {
    auto mapping = Mapping::for_filling(memory->get(), static_cast<uint64_t>(size_bytes));
    if (!mapping) return mapping.error();
    const int64_t filled =
        link_.options().loader(partition, mapping->data(), static_cast<uint64_t>(size_bytes));
    if (filled != size_bytes) {
      return make_error(filled < 0 ? static_cast<int>(-filled) : EIO, "the loader failed");
    }
  }
  if (Outcome<void> sealed = seal(memory->get()); !sealed) return sealed.error();
  return memory;
}

// --- chunks ------------------------------------------------------------------------

// As far as is known of what the job has not had. Changed chunks may stand behind those of the
// graph.
uint32_t Job::chunk_count(uint32_t partition) const {
  const auto given = chunk_counts_.find(partition);
  uint64_t count = given != chunk_counts_.end()
                       ? given->second
                       : chunk_count_of(link_.partition_bytes()[partition], link_.chunk_bytes());
  const auto behind = mutated_.lower_bound({partition + 1, 0});
  if (behind != mutated_.begin() && std::prev(behind)->first.first == partition) {
    count = std::max<uint64_t>(count, std::prev(behind)->first.second + uint64_t{1});
  }
  return static_cast<uint32_t>(count);
}

Chunk Job::chunk_at(uint32_t number) const {
  const Partition& partition = *partition_;
  Chunk chunk{.partition = partition.number, .chunk = number, .bytes = {}};
  const auto mutated = mutated_.find({partition.number, number});
  const auto updated = partition.updated.find(number);
  bool changed = true;
  if (mutated != mutated_.end()) {
    chunk.bytes = mutated->second;
  } else if (updated != partition.updated.end()) {
    chunk.bytes = updated->second;
  } else {
    const uint64_t size_bytes = partition.bytes->size();
    const uint64_t begin = number == 0 ? 0 : std::min(number * link_.chunk_bytes(), size_bytes);
    chunk.bytes =
        partition.bytes->bytes().subspan(begin, std::min(link_.chunk_bytes(), size_bytes - begin));
    changed = number >= chunk_count_of(size_bytes, link_.chunk_bytes());
  }
  const RecordFormat& record = link_.layout().record;
  if (record.size_bytes == 0) return chunk;
  chunk.edge_count = chunk.bytes.size() / record.size_bytes;
  chunk.active_edge_count = chunk.edge_count;
  if (active_.empty()) return chunk;
  if (changed) {
    std::vector<ChunkEntry> table;
    label_chunk(chunk.bytes, record, table);
    chunk.active_edge_count = count_active_edges(table, active_);
  } else if (labels_) {
    chunk.active_edge_count = count_active_edges(labels_.table(partition.number, number), active_);
  }
  return chunk;
}

Outcome<std::optional<Chunk>> Job::start() {
  if (!partition_) return make_error(EINVAL, "{}: no partition to start with", link_.name());
  barrier();
  Partition& partition = *partition_;
  const bool skips = link_.layout().record.size_bytes != 0;
  while (partition.chunk < chunk_count(partition.number)) {
    Chunk chunk = chunk_at(partition.chunk++);
    if (skips && chunk.active_edge_count == 0) continue;
    if (auto given = await_turn(chunk); !given) return given.error();
    chunk.thread_count = batch_.thread_count;
    partition.started = true;
    partition.started_ns = monotonic_ns();
    partition.edge_count += chunk.edge_count;
    partition.active_edge_count += chunk.active_edge_count;
    return std::optional(chunk);
  }
  return std::optional<Chunk>();
}

// Without a coordinator the chunk is this job's alone.
Outcome<void> Job::await_turn(const Chunk& chunk) {
  if (batch_.one_turn && std::exchange(batch_.turn_taken, true)) return {};
  const ChunkLoad load = batch_.one_turn ? profile_.load(batch_.edge_count, batch_.edge_count)
                                         : profile_.load(chunk.active_edge_count, chunk.edge_count);
  const TurnMessage ask{.chunk = batch_.one_turn ? 0 : chunk.chunk,
                        .process_ns = load.process_ns,
                        .access_ns = load.access_ns};
  batch_.thread_count = link_.options().thread_count;
  Outcome<void> sent = link_.send(ask);
  if (!link_.connected()) return {};
  if (!sent || batch_.alone) return sent;
  auto message = link_.receive();
  if (!link_.connected()) return {};
  if (!message) return message.error();
  TurnGivenMessage turn;
  if (kind_of(*message) != Kind::kTurnGiven || !message->read(turn)) return link_.confused();
  batch_.thread_count = turn.thread_count;
  return {};
}

void Job::barrier() {
  if (!partition_ || !partition_->started) return;
  partition_->started = false;
  replaced_.clear();
  partition_->thread_ns += (monotonic_ns() - partition_->started_ns) * batch_.thread_count;
  if (batch_.one_turn) return;
  // A coordinator that is gone is found to be so by next().
  (void)link_.send(PlainMessage{Kind::kDone}).has_value();
}

// --- changes -----------------------------------------------------------------------

Outcome<void> Job::mutate(uint32_t partition, uint32_t chunk, std::span<const char> bytes) {
  if (Outcome<void> good = check_change(partition, bytes); !good) return good;
  if (const uint32_t count = chunk_count(partition); chunk > count) {
    return make_error(EINVAL, "{}: partition {}: chunk {} of {}", link_.name(), partition, chunk, count);
  }
  std::vector<char> changed(bytes.begin(), bytes.end());  // perhaps of what it replaces
  std::vector<char>& place = mutated_[{partition, chunk}];
  if (partition_ && partition_->started) replaced_.push_back(std::move(place));
  place = std::move(changed);
  return {};
}

Outcome<uint64_t> Job::update(uint32_t partition, uint32_t chunk, std::span<const char> bytes) {
  if (Outcome<void> good = check_change(partition, bytes); !good) return good.error();
  return link_.update(partition, chunk, bytes);
}

Outcome<void> Job::check_change(uint32_t partition, std::span<const char> bytes) const {
  if (partition >= partition_count()) {
    return make_error(EINVAL, "{}: partition {} of {}", link_.name(), partition, partition_count());
  }
  const uint32_t record_bytes = link_.layout().record.size_bytes;
  if (record_bytes != 0 && bytes.size() % record_bytes != 0) {
    return make_error(EINVAL, "{} bytes are not whole edges of {}", bytes.size(), record_bytes);
  }
  return {};
}

}  // namespace graphlane::share
