#include "adapters/share/client/job.h"

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
  PartitionSet units(link_.units().count());
  active_ = active;
  const bool any = std::ranges::any_of(active, [](uint64_t word) { return word != 0; });
  for (uint32_t unit = 0; any && unit < link_.units().count(); ++unit) {
    if (may_be_active(unit)) units.add(unit);
  }
  return begin_sweep_over(std::move(units));
}

Outcome<void> Job::begin_sweep(const PartitionSet& active) {
  PartitionSet units(link_.units().count());
  active_ = {};
  for (uint32_t unit = 0; unit < link_.units().count(); ++unit) {
    if (active.has(link_.units().partition_of(unit))) units.add(unit);
  }
  return begin_sweep_over(std::move(units));
}

// Leaves out empty units that nothing has changed: they need no load.
Outcome<void> Job::begin_sweep_over(PartitionSet units) {
  leave_partition();
  batch_ = {};
  for (uint32_t unit = units.next(0); unit < units.partition_count(); unit = units.next(unit + 1)) {
    const bool is_empty = !link_.layout().by_loader && link_.units().bytes_of(unit) == 0;
    if (is_empty && !is_changed(link_.units().partition_of(unit))) units.remove(unit);
  }
  remaining_ = std::move(units);
  sweeping_ = true;
  all_given_ = false;
  return send_sweep();
}

bool Job::is_changed(uint32_t partition) const {
  if (link_.is_updated(partition)) return true;
  const auto mutated = mutated_.lower_bound({partition, 0});
  return mutated != mutated_.end() && mutated->first.first == partition;
}

// Whether a chunk of the unit has an edge from an active vertex. Unlabelled ones count as active.
bool Job::may_be_active(uint32_t unit) const {
  const uint32_t partition = link_.units().partition_of(unit);
  if (!labels_ || is_changed(partition)) return true;
  const uint64_t first = link_.units().offset_of(unit) / link_.chunk_bytes();
  const uint64_t end = first + chunk_count_of(link_.units().bytes_of(unit), link_.chunk_bytes());
  for (uint64_t k = first; k < end; ++k) {
    if (any_active_edge(labels_.table(partition, static_cast<uint32_t>(k)), active_)) return true;
  }
  return false;
}

// Does nothing without a coordinator: fetch() reattaches and sends the sweep then.
Outcome<void> Job::send_sweep() {
  if (!link_.connected()) return {};
  const SweepMessage sweep{.wants_labels = !active_.empty() && !labels_,
                           .within = next_of_partition()};
  Outcome<void> sent = link_.send(sweep, bytes_of(remaining_));
  return sent || link_.connected() ? sent : Outcome<void>();
}

Outcome<std::optional<uint32_t>> Job::next() {
  if (!sweeping_) {
    if (auto begun = begin_sweep(PartitionSet(partition_count(), true)); !begun) {
      return begun.error();
    }
  }
  const Outcome<bool> fetched = fetch(leave_partition());
  if (!fetched) return fetched.error();
  if (*fetched) {
    partition_.emplace();
    partition_->number = batch_.rest.front().partition;
    take_next_unit();
    return std::optional(partition_->number);
  }
  sweeping_ = false;
  active_ = {};
  return std::optional<uint32_t>();
}

// Moves the first fetched unit into partition_.
void Job::take_next_unit() {
  partition_->unit = std::move(batch_.rest.front());
  batch_.rest.pop_front();
}

// Gives the partition and its fetched units back. True: units of it were not given yet.
bool Job::leave_partition() {
  if (!partition_) return false;
  barrier();
  profile_.add(partition_->active_edge_count, partition_->edge_count, partition_->thread_ns);
  while (!batch_.rest.empty() && batch_.rest.front().partition == partition_->number) {
    batch_.rest.pop_front();
  }
  const bool is_left = forget_rest_of_partition();
  partition_.reset();
  return is_left;
}

// Removes the partition's remaining units from this sweep. True: there were some.
bool Job::forget_rest_of_partition() {
  const uint32_t first = next_of_partition();
  if (first == kNoUnit) return false;
  const uint32_t end = link_.units().end_of(partition_->number);
  for (uint32_t unit = first; unit < end; unit = remaining_.next(unit + 1)) remaining_.remove(unit);
  return true;
}

// The partition's next unit that was not given yet; kNoUnit: there is none.
uint32_t Job::next_of_partition() const {
  if (!partition_) return kNoUnit;
  const uint32_t unit = remaining_.next(link_.units().first_of(partition_->number));
  return unit < link_.units().end_of(partition_->number) ? unit : kNoUnit;
}

// Ensures that batch_.rest has a unit; false: the sweep is over.
Outcome<bool> Job::fetch(bool leaves_partition) {
  if (!batch_.rest.empty()) return true;
  if (all_given_) return false;
  Outcome<void> answered = ask_next(leaves_partition);
  for (int i = 0; !answered && !link_.connected() && i < kReattachTries; ++i) {
    if (auto attached = reattach(); !attached) return attached.error();
    if (auto sent = send_sweep(); !sent) return sent.error();
    answered = ask_next(false);
  }
  if (!answered) return answered.error();
  return !batch_.rest.empty();
}

// Drops mappings and counts of the old coordinator: the new one may cut units otherwise.
Outcome<void> Job::reattach() {
  const Units before = link_.units();
  kept_.clear();
  chunk_counts_.clear();
  if (auto attached = link_.reattach(!mutated_.empty()); !attached) return attached;
  if (labels_ && labels_.chunk_bytes() != link_.chunk_bytes()) labels_ = {};
  if (before.unit_bytes() != link_.units().unit_bytes()) recut(before);
  return {};
}

// Translates the remaining units of `before` into the new units. Of the current partition, the job
// has had everything before `begin`.
void Job::recut(const Units& before) {
  const Units& now = link_.units();
  PartitionSet remaining(now.count());
  if (partition_) {
    partition_->begin = UINT64_MAX;
    partition_->unit = Unit();
    partition_->unit.is_last = false;
  }
  for (uint32_t unit = remaining_.next(0); unit < before.count();
       unit = remaining_.next(unit + 1)) {
    const uint32_t partition = before.partition_of(unit);
    const uint64_t begin = before.offset_of(unit);
    const uint64_t last = begin + std::max<uint64_t>(before.bytes_of(unit), 1) - 1;
    for (uint32_t u = now.unit_at(partition, begin); u <= now.unit_at(partition, last); ++u) {
      remaining.add(u);
    }
    if (partition_ && partition_->number == partition) {
      partition_->begin = std::min(partition_->begin, begin);
    }
  }
  remaining_ = std::move(remaining);
}

// Leaves the next batch in batch_, or an empty one at the sweep's end.
Outcome<void> Job::ask_next(bool leaves_partition) {
  NextMessage ask{.leaves_partition = leaves_partition};
  if (profile_.costs().access_measured && !profile_told_) {
    ask.access_ps = profile_.costs().access_ps;
    profile_told_ = true;
  }
  if (Outcome<void> sent = link_.send(ask); !sent) return sent;
  for (;;) {
    auto message = link_.receive();
    if (!message) return message.error();
    switch (kind_of(*message)) {
      case Kind::kUnits: {
        Outcome<void> taken = take_units(*message);
        if (!taken) link_.drop();  // the next sweep message names the units that are missing
        return taken;
      }
      case Kind::kSweepEnd: all_given_ = true; return {};
      case Kind::kLoad:
        if (auto loaded = serve_load(*message); !loaded) return loaded;
        break;
      default: return link_.protocol_error();
    }
  }
}

Outcome<void> Job::take_units(Message& message) {
  const Error bad =
      make_error(EPROTO, "{}: its coordinator gave an unexpected answer", link_.name());
  UnitsMessage head;
  if (!message.read(head)) return bad;
  const std::string_view list = message.after(sizeof head);
  if (head.count == 0 || list.size() != size_t{head.count} * sizeof(GivenUnit)) return bad;
  std::vector<GivenUnit> given(head.count);
  std::memcpy(given.data(), list.data(), list.size());
  size_t fd_count = head.has_labels;
  for (const GivenUnit& it : given) {
    if (it.unit >= link_.units().count() || it.has_memory > 1 || it.has_overlay > 1) return bad;
    fd_count += it.has_memory + it.has_overlay;
  }
  if (message.fds.size() != fd_count) return bad;
  if (head.has_labels) {
    if (Outcome<void> taken = take_labels(message.fds.back().get()); !taken) return taken;
  }
  Batch batch{.rest = {}, .alone = head.alone != 0, .one_turn = head.one_turn != 0};
  std::span<const Fd> memory = message.fds;
  for (const GivenUnit& it : given) {
    auto unit = unit_of(it, memory);
    if (!unit) return unit.error();
    memory = memory.subspan(it.has_memory + it.has_overlay);
    if (const uint32_t edge_bytes = link_.layout().record.size_bytes) {
      batch.edge_count += it.size_bytes / edge_bytes;
    }
    batch.rest.push_back(std::move(*unit));
  }
  for (const GivenUnit& it : given) remaining_.remove(it.unit);
  batch_ = std::move(batch);
  return {};
}

Outcome<void> Job::take_labels(int memory) {
  const Error bad =
      make_error(EPROTO, "{}: its coordinator gave an unexpected answer", link_.name());
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

Outcome<Job::Unit> Job::unit_of(const GivenUnit& given, std::span<const Fd> memory) {
  auto bytes = memory_of(given, memory);
  if (!bytes) return bytes.error();
  const Units& units = link_.units();
  Unit unit{.partition = units.partition_of(given.unit),
            .offset = units.offset_of(given.unit),
            .is_last = units.is_last(given.unit),
            .bytes = std::move(*bytes),
            .overlay = {},
            .updated = {}};
  if (given.has_overlay) {
    const int overlay = memory[given.has_memory].get();
    const Result<uint64_t> overlay_bytes = sealed_size(overlay);
    if (!overlay_bytes) {
      return make_error(EPROTO, "{}: its coordinator gave an unexpected answer", link_.name());
    }
    auto mapped = Mapping::of_sealed(overlay, *overlay_bytes);
    if (!mapped) return mapped.error();
    unit.overlay = std::move(*mapped);
    auto updated = parse_overlay(unit.overlay.bytes());
    if (!updated) return updated.error();
    unit.updated = std::move(*updated);
  }
  const uint64_t end = chunk_count_of(unit.offset + given.size_bytes, link_.chunk_bytes());
  unit.chunk = static_cast<uint32_t>(unit.offset / link_.chunk_bytes());
  unit.chunk_end = static_cast<uint32_t>(end);
  if (!unit.is_last) return unit;
  uint64_t& count = chunk_counts_[unit.partition];
  count = end;
  if (!unit.updated.empty()) count = std::max(count, unit.updated.rbegin()->first + uint64_t{1});
  return unit;
}

Outcome<std::shared_ptr<const Mapping>> Job::memory_of(const GivenUnit& given,
                                                       std::span<const Fd> memory) {
  const Error bad =
      make_error(EPROTO, "{}: its coordinator gave an unexpected answer", link_.name());
  if (!given.has_memory) {
    const auto kept = kept_.find(given.unit);
    return kept == kept_.end() ? Outcome<std::shared_ptr<const Mapping>>(bad) : kept->second;
  }
  const Result<uint64_t> size_bytes = sealed_size(memory[0].get());
  if (!size_bytes || *size_bytes != given.size_bytes) return bad;
  auto mapped = Mapping::of_sealed(memory[0].get(), given.size_bytes);
  if (!mapped) return mapped.error();
  auto bytes = std::make_shared<const Mapping>(std::move(*mapped));
  if (link_.resident()) kept_[given.unit] = bytes;
  return bytes;
}

// --- the loader --------------------------------------------------------------------

Outcome<void> Job::serve_load(const Message& message) {
  LoadMessage load;
  if (!message.read(load) || !link_.options().loader || load.partition >= partition_count()) {
    return make_error(EPROTO, "{}: asked to load a partition that it cannot", link_.name());
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

// The chunks of the partition, as far as known from the layout, units that were given, and changes.
// Mutations and updates may add chunks behind those of the graph.
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
  const Unit& unit = partition_->unit;
  Chunk chunk{.partition = unit.partition, .chunk = number, .bytes = {}};
  const auto mutated = mutated_.find({unit.partition, number});
  const auto updated = unit.updated.find(number);
  bool changed = true;
  if (mutated != mutated_.end()) {
    chunk.bytes = mutated->second;
  } else if (updated != unit.updated.end()) {
    chunk.bytes = updated->second;
  } else {
    const uint64_t unit_end = unit.offset + unit.bytes->size();
    const uint64_t begin = number == 0 ? 0 : std::min(number * link_.chunk_bytes(), unit_end);
    const uint64_t end = begin + std::min(link_.chunk_bytes(), unit_end - begin);
    const uint64_t wanted = std::clamp(partition_->begin, begin, end);
    chunk.bytes = unit.bytes->bytes().subspan(wanted - unit.offset, end - wanted);
    changed = number >= chunk_count_of(unit_end, link_.chunk_bytes());
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
    chunk.active_edge_count = count_active_edges(labels_.table(unit.partition, number), active_);
  }
  return chunk;
}

Outcome<std::optional<Chunk>> Job::start() {
  if (!partition_) return make_error(EINVAL, "{}: no partition to start with", link_.name());
  barrier();
  const bool skips = link_.layout().record.size_bytes != 0;
  for (;;) {
    Unit& unit = partition_->unit;
    while (unit.chunk < (unit.is_last ? chunk_count(unit.partition) : unit.chunk_end)) {
      Chunk chunk = chunk_at(unit.chunk++);
      if (skips && chunk.active_edge_count == 0) continue;
      if (auto given = await_turn(chunk); !given) return given.error();
      chunk.thread_count = batch_.thread_count;
      partition_->started = true;
      partition_->started_ns = monotonic_ns();
      partition_->edge_count += chunk.edge_count;
      partition_->active_edge_count += chunk.active_edge_count;
      return std::optional(chunk);
    }
    if (batch_.rest.empty() && next_of_partition() == kNoUnit) return std::optional<Chunk>();
    const Outcome<bool> fetched = fetch(/*leaves_partition=*/false);
    if (!fetched) {
      // The unit cannot be read, and the coordinator gives no more of its partition.
      if (link_.connected()) forget_rest_of_partition();
      return fetched.error();
    }
    if (!*fetched || batch_.rest.front().partition != partition_->number) {
      return std::optional<Chunk>();
    }
    take_next_unit();
  }
}

// Waits for the job's turn. Without a coordinator the job needs none.
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
  if (kind_of(*message) != Kind::kTurnGiven || !message->read(turn)) return link_.protocol_error();
  batch_.thread_count = turn.thread_count;
  return {};
}

void Job::barrier() {
  if (!partition_ || !partition_->started) return;
  partition_->started = false;
  replaced_.clear();
  partition_->thread_ns += (monotonic_ns() - partition_->started_ns) * batch_.thread_count;
  if (batch_.one_turn) return;
  // next() notices a lost coordinator.
  (void)link_.send(PlainMessage{Kind::kDone}).has_value();
}

// --- changes -----------------------------------------------------------------------

Outcome<void> Job::mutate(uint32_t partition, uint32_t chunk, std::span<const char> bytes) {
  if (Outcome<void> good = check_change(partition, bytes); !good) return good;
  if (const uint32_t count = chunk_count(partition); chunk > count) {
    return make_error(EINVAL, "{}: partition {}: chunk {} of {}", link_.name(), partition, chunk,
                      count);
  }
  std::vector<char> changed(bytes.begin(), bytes.end());  // may alias the bytes that it replaces
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
