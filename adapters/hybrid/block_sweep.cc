#include "adapters/hybrid/block_sweep.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include "adapters/hybrid/list_decoder.h"
#include "iomgr/base/mutex.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/read/page_reader.h"

namespace graphlane::hybrid {
namespace {

// A worker's chunks that are asked for and not done.
constexpr size_t kSlotsMax = 256;
constexpr uint64_t kSlotBytesMax = 16 << 20;
// A worker begins adjacent chunks of so many bytes at once, so that disks get long reads.
constexpr uint64_t kRunBytesMax = 1 << 20;
constexpr size_t kRunChunksMax = 64;
// Runs are shorter where a worker would get fewer of them.
constexpr uint64_t kRunsPerWorker = 8;
// Up to this many bytes the caller sweeps alone: to wake the others would take longer.
constexpr uint64_t kAloneBytes = 64 << 10;

uint64_t page_of(uint64_t offset) { return offset / kBlockSize; }

}  // namespace

void SweepPlan::add_range(const BlockIndexPtr& index, uint64_t first, uint64_t end,
                          const SweepChunk& like) {
  if (index == nullptr) return;
  const graphfmt::ListIndex& lists = index->index;
  // Few bytes may be many arcs, which are decoded together.
  const uint64_t arcs = std::max<uint64_t>(lists.arc_count(), 1);
  const uint64_t bytes_max = std::clamp<uint64_t>(
      BlockSweep::kChunkArcs * lists.lists_bytes() / arcs, 4096, BlockSweep::kChunkBytes);
  const uint64_t group = lists.shape().has_groups ? graphfmt::kIndexGroupVertices : 1;
  while (first < end) {
    const uint64_t from = lists.offset(first);
    uint64_t low = first + 1, high = end + 1;
    while (high - low > 1) {
      const uint64_t middle = (low + high) / 2;
      (lists.offset(middle) - from <= bytes_max ? low : high) = middle;
    }
    low = graphfmt::whole_groups_end(first, low, end, group);
    const uint64_t to = lists.offset(low);
    if (to > from) {
      SweepChunk& chunk = chunks.emplace_back(like);
      chunk.index = index;
      chunk.first = first;
      chunk.end = low;
      chunk.lists = {from, to - from};
    }
    first = low;
  }
}

void SweepPlan::add_items(const DualGraph& graph, const BlockIndexPtr& index,
                          std::vector<SweepItem> chosen, uint64_t gap_bytes,
                          const SweepChunk& like) {
  const std::span<const SweepItem> all = items.emplace_back(std::move(chosen));
  const uint64_t pages_apart_max = 1 + gap_bytes / kBlockSize;
  SweepChunk* chunk = nullptr;
  const graphfmt::WeightTable* const weights =
      graph.has_weights() ? &graph.dual().weights(index->side) : nullptr;
  const uint64_t first_arc = graph.dual().block(index->side, index->own, index->other).first_arc;
  uint64_t weights_end = 0;  // of the item before
  for (size_t i = 0; i < all.size(); ++i) {
    const SweepItem& item = all[i];
    const uint64_t end = item.offset + item.length_bytes;
    bool adjoins = chunk != nullptr &&
                   page_of(item.offset) <= page_of(chunk->lists.end() - 1) + pages_apart_max;
    if (weights != nullptr) {
      const graphfmt::ListIndex& lists = index->index;
      const ByteRange codes =
          weights->range(first_arc + lists.first_arc(item.vertex), lists.arcs(item.vertex));
      if (codes.length_bytes > 0) {
        adjoins = adjoins && (weights_end == 0 ||
                              page_of(codes.offset) <= page_of(weights_end - 1) + pages_apart_max);
        weights_end = codes.end();
      }
    }
    if (adjoins && end - chunk->lists.offset <= BlockSweep::kChunkBytes) {
      chunk->items = {chunk->items.data(), chunk->items.size() + 1};
      chunk->lists.length_bytes = end - chunk->lists.offset;
      continue;
    }
    // Chunks that adjoin leave no gap, which would make a disk wait for the next rotation.
    const uint64_t begin = adjoins ? std::min(chunk->lists.end(), item.offset) : item.offset;
    chunk = &chunks.emplace_back(like);
    chunk->index = index;
    chunk->items = all.subspan(i, 1);
    chunk->lists = {begin, end - begin};
  }
}

void SweepPlan::append(SweepPlan&& other) {
  std::move(other.chunks.begin(), other.chunks.end(), std::back_inserter(chunks));
  std::move(other.items.begin(), other.items.end(), std::back_inserter(items));
  other.clear();
}

void SweepPlan::reverse(size_t first_chunk, uint64_t segment_bytes) {
  const auto begin = chunks.begin() + static_cast<ptrdiff_t>(first_chunk);
  std::reverse(begin, chunks.end());
  for (auto first = begin; first != chunks.end();) {
    uint64_t bytes = first->lists.length_bytes;
    auto end = first + 1;
    for (; end != chunks.end() && end->index == first->index; ++end) {
      bytes += end->lists.length_bytes;
      if (bytes > segment_bytes) break;
    }
    std::reverse(first, end);
    first = end;
  }
}

// The turns of chunks (block_sweep.h).
class BlockSweep::Turns {
 public:
  explicit Turns(const SweepPlan& plan) {
    for (const SweepChunk& chunk : plan.chunks) {
      if (chunk.group >= groups_.size()) groups_.resize(chunk.group + 1);
      std::vector<uint32_t>& left = groups_[chunk.group].left;
      if (chunk.step >= left.size()) left.resize(chunk.step + 1);
      ++left[chunk.step];
    }
    for (Group& group : groups_) skip(group);
  }

  bool has_come(const SweepChunk& chunk) {
    MutexLock lock(mu_);
    return groups_[chunk.group].step == chunk.step;
  }
  void done(const SweepChunk& chunk) {
    MutexLock lock(mu_);
    Group& group = groups_[chunk.group];
    if (--group.left[chunk.step] > 0) return;
    skip(group);
    ++changes_;
    changed_.notify_all();
  }
  void stop() {
    MutexLock lock(mu_);
    stopped_ = true;
    ++changes_;
    changed_.notify_all();
  }
  uint64_t changes() {
    MutexLock lock(mu_);
    return changes_;
  }
  // Until there are others than `seen`.
  void wait(uint64_t seen) {
    MutexLock lock(mu_);
    while (changes_ == seen && !stopped_) changed_.wait(mu_);
  }

 private:
  struct Group {
    std::vector<uint32_t> left;  // chunks, by step
    uint32_t step = 0;
  };
  static void skip(Group& group) {
    while (group.step < group.left.size() && group.left[group.step] == 0) ++group.step;
  }

  Mutex mu_;
  CondVar changed_;
  std::vector<Group> groups_ GUARDED_BY(mu_);
  uint64_t changes_ GUARDED_BY(mu_) = 0;
  bool stopped_ GUARDED_BY(mu_) = false;
};

class BlockSweep::Worker {
 public:
  Worker(const DualGraph& graph, unsigned number, unsigned worker_count)
      : graph_(graph),
        number_(number),
        queue_(graph.pages()),
        decoder_(graph),
        no_memory_(make_error(ENOMEM, "{}: no memory for its lists", graph.path())) {
    free_.reserve(kSlotsMax);
    begun_.reserve(kSlotsMax);
    bytes_max_ =
        std::clamp<uint64_t>(graph.cache_bytes() / 4 / worker_count, kChunkBytes, kSlotBytesMax);
  }
  ~Worker() { drain(); }

  struct Shared {
    const SweepPlan& plan;
    const Body& body;
    Turns turns;
    uint64_t run_bytes;  // see claim_run()
    std::atomic<size_t> next{0};
    std::atomic<bool> failed{false};
  };

  void run(Shared& shared) {
    try {
      sweep(shared);
    } catch (const std::bad_alloc&) {
      stop(shared);  // first of all: others may wait for the turns of this worker's chunks
      keep(std::move(no_memory_));
    }
    drain();
  }

  const std::optional<Error>& error() const { return error_; }
  SweepStats take_stats() { return std::exchange(stats_, {}); }

 private:
  void sweep(Shared& shared) {
    while (!shared.failed.load(std::memory_order_relaxed)) {
      while (has_room(shared) && begin_run(shared)) {
      }
      if (begun_.empty()) break;
      const uint64_t seen = shared.turns.changes();
      if (do_one(shared)) continue;
      if (arrived_ < begun_.size()) {
        queue_.wait();
      } else {
        shared.turns.wait(seen);
      }
      if (error_) stop(shared);
      if (interrupt_requested.load(std::memory_order_relaxed)) {
        fail(make_error(EINTR, "interrupted"), shared);
      }
    }
  }

  struct Slot;
  // The pages of one file that a chunk needs.
  struct Reading final : PageTask {
    void run(const PageBytes& there) noexcept override { worker->arrived(*this, there); }
    void failed(int code) noexcept override { worker->lost(*this, code); }

    Worker* worker = nullptr;
    Slot* slot = nullptr;
    const OpenPagedFile* file = nullptr;
    ByteRange range = {};
    std::vector<uint8_t> bytes;
  };
  struct Slot {
    const SweepChunk* chunk = nullptr;
    Reading lists;
    Reading weights;
    unsigned pending = 0;
  };

  bool has_room(const Shared& shared) const {
    return begun_.empty() ||
           (begun_.size() + kRunChunksMax <= kSlotsMax && bytes_ + shared.run_bytes <= bytes_max_);
  }

  // Chunks [first, end) of the plan.
  struct Run {
    size_t first;
    size_t end;
  };
  // The next chunks of one block and one step, with about `run_bytes` together. Empty: none is left.
  static Run claim_run(Shared& shared) {
    const std::vector<SweepChunk>& chunks = shared.plan.chunks;
    size_t first = shared.next.load(std::memory_order_relaxed);
    size_t end;
    do {
      uint64_t bytes = 0;
      const size_t end_max = std::min(chunks.size(), first + kRunChunksMax);
      for (end = first; end < end_max && bytes < shared.run_bytes; ++end) {
        const SweepChunk& chunk = chunks[end];
        if (chunk.index != chunks[first].index || chunk.step != chunks[first].step) break;
        bytes += chunk.lists.length_bytes;
      }
    } while (!shared.next.compare_exchange_weak(first, end, std::memory_order_relaxed));
    return {first, end};
  }

  bool begin_run(Shared& shared) {
    const Run run = claim_run(shared);
    for (size_t number = run.first; number < run.end; ++number) {
      begin(shared.plan.chunks[number]);
    }
    return run.first < run.end;
  }

  void begin(const SweepChunk& chunk) {
    if (free_.empty()) {
      slots_.push_back(std::make_unique<Slot>());
      free_.push_back(slots_.back().get());
    }
    Slot& slot = *free_.back();
    free_.pop_back();
    slot.chunk = &chunk;
    begun_.push_back(&slot);
    const graphfmt::DualBlock& block =
        graph_.dual().block(chunk.index->side, chunk.index->own, chunk.index->other);
    slot.pending = graph_.has_weights() ? 2 : 1;
    begin(slot, slot.lists, graph_.blocks(chunk.index->side),
          {block.lists.offset + chunk.lists.offset, chunk.lists.length_bytes});
    if (graph_.has_weights()) {
      const ArcRange arcs = arcs_of(graph_, chunk);
      begin(slot, slot.weights, graph_.weights(chunk.index->side),
            graph_.dual().weights(chunk.index->side).range(arcs.first, arcs.count));
    }
  }

  void begin(Slot& slot, Reading& reading, const OpenPagedFile& file, ByteRange range) {
    reading.worker = this;
    reading.slot = &slot;
    reading.file = &file;
    reading.range = range;
    bytes_ += range.length_bytes;
    if (reading.bytes.size() < range.length_bytes + kDecodeSlackBytes) {
      reading.bytes.resize(range.length_bytes + kDecodeSlackBytes);
    }
    if (range.length_bytes > 0) {
      queue_.submit(file.paged(), range, reading);
    } else {
      // Weights without codes: all are the same.
      if (--slot.pending == 0) ++arrived_;
    }
  }

  void arrived(Reading& reading, const PageBytes& bytes) noexcept {
    if (bytes.size_bytes() < reading.range.length_bytes) {
      keep_made([&] {
        return make_error(EIO, "{}: ends at byte {}", reading.file->path(),
                          reading.range.offset + bytes.size_bytes());
      });
    } else if (!error_) {
      bytes.copy(0,
                 {reinterpret_cast<std::byte*>(reading.bytes.data()), reading.range.length_bytes});
    }
    if (--reading.slot->pending == 0) ++arrived_;
  }
  void lost(Reading& reading, int code) noexcept {
    keep_made([&] {
      return code == EBADMSG
                 ? make_error(EIO, "{}: damaged between byte {} and byte {}: its checksum is wrong",
                              reading.file->path(), reading.range.offset, reading.range.end())
                 : os_error(code, reading.file->path(),
                            fmt::format("cannot read byte {}", reading.range.offset));
    });
    if (--reading.slot->pending == 0) ++arrived_;
  }

  // The first chunk that has come and has its turn.
  bool do_one(Shared& shared) {
    for (size_t i = 0; i < begun_.size(); ++i) {
      Slot& slot = *begun_[i];
      if (slot.pending > 0 || !shared.turns.has_come(*slot.chunk)) continue;
      begun_.erase(begun_.begin() + static_cast<ptrdiff_t>(i));
      --arrived_;
      bytes_ -= slot.lists.range.length_bytes +
                (graph_.has_weights() ? slot.weights.range.length_bytes : 0);
      if (!error_) process(slot, shared);
      if (error_) {
        stop(shared);
      } else {
        shared.turns.done(*slot.chunk);
      }
      free_.push_back(&slot);
      return true;
    }
    return false;
  }

  void process(Slot& slot, Shared& shared) {
    const uint8_t* const weights = graph_.has_weights() ? slot.weights.bytes.data() : nullptr;
    try {
      const auto lists = decoder_.decode(*slot.chunk, slot.lists.bytes.data(), weights);
      if (!lists) return keep(lists.error());
      ++stats_.chunks;
      stats_.lists += lists->vertices.size();
      stats_.arcs += lists->neighbours.size();
      if (auto done = shared.body(number_, *slot.chunk, *lists); !done) keep(done.error());
    } catch (const std::bad_alloc&) {
      keep(std::move(no_memory_));
    }
  }

  template <class Make>
  void keep_made(const Make& make) noexcept {
    try {
      keep(make());
    } catch (const std::bad_alloc&) {
      keep(std::move(no_memory_));
    }
  }
  void keep(Error error) {
    if (!error_) error_ = std::move(error);
  }
  void fail(Error error, Shared& shared) {
    keep(std::move(error));
    stop(shared);
  }
  static void stop(Shared& shared) {
    shared.failed.store(true, std::memory_order_relaxed);
    shared.turns.stop();
  }
  void drain() {
    while (queue_.wait()) {
    }
    for (Slot* const slot : begun_) free_.push_back(slot);
    begun_.clear();
    arrived_ = 0;
    bytes_ = 0;
  }

  const DualGraph& graph_;
  const unsigned number_;
  uint64_t bytes_max_ = 0;
  PageQueue queue_;
  ListDecoder decoder_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_;
  std::vector<Slot*> begun_;  // in the order of the plan
  size_t arrived_ = 0;        // of those
  uint64_t bytes_ = 0;
  std::optional<Error> error_;
  // Made in advance: where there is no memory, there is none for the line that says so.
  Error no_memory_;
  SweepStats stats_;
};

BlockSweep::BlockSweep(const DualGraph& graph, WorkerPool& pool) : graph_(graph), pool_(pool) {
  for (unsigned worker = 0; worker < pool.size(); ++worker) {
    workers_.push_back(std::make_unique<Worker>(graph, worker, pool.size()));
  }
}

BlockSweep::~BlockSweep() = default;

Outcome<void> BlockSweep::run(const SweepPlan& plan, const Body& body) {
  if (plan.chunks.empty()) return {};
  uint64_t bytes = 0;
  for (const SweepChunk& chunk : plan.chunks) bytes += chunk.lists.length_bytes;
  Worker::Shared shared{.plan = plan,
                        .body = body,
                        .turns = Turns(plan),
                        .run_bytes = std::clamp<uint64_t>(
                            bytes / (kRunsPerWorker * workers_.size()), 1, kRunBytesMax)};
  if (bytes <= kAloneBytes) {
    workers_[0]->run(shared);
  } else {
    pool_.run([&](unsigned worker) { workers_[worker]->run(shared); });
  }
  std::optional<Error> first;
  for (const auto& worker : workers_) {
    const SweepStats stats = worker->take_stats();
    stats_.chunks += stats.chunks;
    stats_.lists += stats.lists;
    stats_.arcs += stats.arcs;
    if (!first && worker->error()) first = worker->error();
  }
  if (first) return *first;
  return {};
}

}  // namespace graphlane::hybrid
