// The part of SharedGraph that brings units into memory, by the worker or by a job's loader, and
// labels them.
#include <fcntl.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "adapters/share/coordinator/shared_graph.h"
#include "adapters/share/memory/sealed_memory.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/cache/memory_budget.h"

namespace graphlane::share {
namespace {

// Prefetch reads are this large, so that a disk hardly seeks for them. They are smaller where the
// prefetched bytes would make fewer than kReadsOfAhead reads, so that some are always in flight.
constexpr uint64_t kReadBytes = uint64_t{16} << 20;
constexpr uint64_t kReadsOfAhead = 3;

}  // namespace

void SharedGraph::release(uint32_t unit) {
  buffers_.release(unit);
  table_.set_loaded(unit, false);
}

// Goes by the buffers, because they are far fewer than the units.
void SharedGraph::release_all(const PartitionSet& loaded) {
  for (auto at = buffers_.all().begin(); at != buffers_.all().end();) {
    const uint32_t unit = (at++)->first;
    if (loaded.has(unit)) release(unit);
  }
}

void SharedGraph::load_wanted(uint64_t now_ns) {
  if (files_->layout.by_loader) return ask_loaders(now_ns);
  const std::vector<GlobalTable::Batch> wanted = table_.wanted();
  blocked_by_budget_ = !load(wanted[0], true);
  // Units behind one that finds no room must not take its place.
  if (blocked_by_budget_ || wanted.size() < 2 || !load(wanted[1], false)) return;
  read_ahead(std::span(wanted).subspan(2));
}

// Skips packed units: they are unpacked when they come next. Reads the missing ones between them
// together, once there are enough bytes.
void SharedGraph::read_ahead(std::span<const GlobalTable::Batch> wanted) {
  const uint64_t enough_bytes = std::min(options_.batching.ahead_bytes / kReadsOfAhead, kReadBytes);
  GlobalTable::Batch missing;
  uint64_t missing_bytes = 0;
  for (const uint32_t unit : wanted | std::views::join) {
    if (buffers_.is_filling(unit)) continue;
    const bool is_missing = !packed_.has(unit);
    if (is_missing) {
      missing.push_back(unit);
      missing_bytes += files_->units.bytes_of(unit);
    }
    if (missing.empty() || (is_missing && missing_bytes < enough_bytes)) continue;
    if (!load(std::exchange(missing, {}), false)) return;
    missing_bytes = 0;
  }
}

void SharedGraph::ask_loaders(uint64_t now_ns) {
  for (const GlobalTable::Batch& batch : table_.wanted()) {
    for (const uint32_t unit : batch) ask_a_loader(unit, now_ns);
  }
}

// Loads the missing units of a batch together; false: there is no room.
bool SharedGraph::load(GlobalTable::Batch batch, bool open) {
  std::erase_if(batch, [&](uint32_t unit) { return buffers_.is_filling(unit); });
  if (batch.empty()) return true;
  uint64_t size_bytes = 0;
  for (const uint32_t unit : batch) size_bytes += files_->units.bytes_of(unit);
  if (!make_room(size_bytes, batch.size(), open)) return false;
  start_filling(batch);
  return true;
}

// Makes room for units. For the open batch, buffers that only late jobs still read do not count
// against the budget, because waiting for late jobs would hold all others up. Prefetched units
// are evicted for it too.
bool SharedGraph::make_room(uint64_t size_bytes, size_t count, bool open) {
  std::set<uint32_t> read;
  BufferPool::Ignored late;
  for (const auto& [id, job] : jobs_) {
    if (!table_.is_late(id)) read.insert(table_.reads(id).begin(), table_.reads(id).end());
  }
  for (const auto& [id, job] : jobs_) {
    for (const uint32_t p : table_.reads(id)) {
      if (!read.insert(p).second) continue;
      late.bytes += buffers_.find(p)->size_bytes;
      ++late.count;
    }
  }
  std::vector<uint32_t> released;
  bool enough =
      buffers_.make_room(size_bytes, count, open ? late : BufferPool::Ignored(), released);
  if (!enough && open) {
    PartitionSet unread(unit_count());
    for (const auto& [unit, buffer] : buffers_.all()) {
      if (buffer.memory && !read.contains(unit)) unread.add(unit);
    }
    // The open batch, which fits the budget, must be in memory as a whole.
    for (const uint32_t unit : table_.open()) unread.remove(unit);
    buffers_.set_spare(unread, table_.round());
    enough = buffers_.make_room(size_bytes, count, late, released);
  }
  for (const uint32_t unit : released) table_.set_loaded(unit, false);
  return enough;
}

void SharedGraph::start_filling(const GlobalTable::Batch& batch) {
  GlobalTable::Batch missing;
  for (const uint32_t unit : batch) {
    buffers_.reserve(unit, files_->units.bytes_of(unit));
    if (auto packed = packed_.find(unit, table_.round())) {
      unpack(unit, std::move(packed));
    } else {
      missing.push_back(unit);
    }
  }
  for (const GlobalTable::Batch& run : files_->runs(missing)) read_run(run);
}

// Unpacks the unit, or reads it again if the kernel has reclaimed packed pages.
void SharedGraph::unpack(uint32_t unit, PackedStore::Packed packed) {
  // In a shared_ptr, because std::function must be copyable. The initial error stays if unpack()
  // throws.
  auto memory = std::make_shared<Outcome<Fd>>(
      make_error(ENOMEM, "{}: no memory to unpack it into", files_->name));
  worker_.read([packed, memory] { *memory = packed->unpack(); },
               [self = weak_from_this(), files = files_, unit, memory] {
                 const auto graph = self.lock();
                 if (!graph) return;
                 if (*memory) {
                   graph->store(unit, std::move(**memory), files->units.bytes_of(unit));
                   return;
                 }
                 graph->buffers_.release(unit);
                 graph->packed_.drop(unit);
                 if (memory->error().code != EAGAIN) graph->fail(unit, memory->error());
               });
}

void SharedGraph::read_run(const GlobalTable::Batch& batch) {
  struct Loaded {
    Outcome<Fd> memory;
    PackedStore::Packed packed;
  };
  // In a shared_ptr as in unpack().
  auto loaded = std::make_shared<std::vector<Loaded>>();
  for (size_t i = 0; i < batch.size(); ++i) {
    loaded->push_back({make_error(ENOMEM, "{}: no memory to read it with", files_->name), nullptr});
  }
  worker_.read(
      [self = weak_from_this(), files = files_, batch, loaded, packs = !resident()] {
        if (self.expired()) return;
        std::vector<Outcome<Fd>> read = files->load(batch);
        for (size_t i = 0; i < batch.size(); ++i) {
          (*loaded)[i].memory = std::move(read[i]);
          const Outcome<Fd>& memory = (*loaded)[i].memory;
          if (!packs || !memory) continue;
          (*loaded)[i].packed =
              PackedPartition::pack(memory->get(), files->units.bytes_of(batch[i]));
        }
      },
      [self = weak_from_this(), files = files_, batch, loaded] {
        const auto graph = self.lock();
        for (size_t i = 0; graph && i < batch.size(); ++i) {
          auto& [memory, packed] = (*loaded)[i];
          if (memory) {
            graph->count_load(files->units.bytes_of(batch[i]));
            graph->store(batch[i], std::move(*memory), files->units.bytes_of(batch[i]));
            if (packed) graph->keep_packed(batch[i], std::move(packed));
          } else {
            graph->buffers_.release(batch[i]);
            graph->fail(batch[i], memory.error());
          }
        }
      });
}

// Labels the units in memory that have no labels yet. The task has its own descriptor of the
// memory, because the buffer may be released meanwhile.
void SharedGraph::label_loaded() {
  if (!labels_ || !labels_->building()) return;
  for (const auto& [unit, buffer] : buffers_.all()) {
    if (!buffer.memory || !labels_->take(unit)) continue;
    auto memory = std::make_shared<const Fd>(sys::fcntl(buffer.memory.get(), F_DUPFD_CLOEXEC));
    auto made = std::make_shared<std::optional<ChunkTables>>();
    worker_.post(
        [labels = labels_, memory, size_bytes = buffer.size_bytes, made] {
          auto bytes = Mapping::of_sealed(memory->get(), size_bytes);
          if (bytes) *made = labels->label(bytes->bytes());
        },
        [self = weak_from_this(), labels = labels_, number = unit, made] {
          const auto graph = self.lock();
          if (graph) labels->add(number, std::move(*made), graph->worker_);
        });
  }
}

// Asks a job that waits for the unit to load it. If it takes too long while others wait, the next
// one is asked too, and the first to finish serves all.
void SharedGraph::ask_a_loader(uint32_t unit, uint64_t now_ns) {
  for (auto& [id, job] : jobs_) {
    if (job.loading != unit) continue;
    if (now_ns < job.loading_until_ns) return;
    if (table_.waits(id)) {
      table_.set_late(id);
      table_.take_back(id);
      job.overdue_loading = true;
      ++counts_.late;
    }
  }
  for (auto& [id, job] : jobs_) {
    if (job.loading || !table_.waits(id) || !table_.needs(id, unit)) continue;
    job.loading = unit;
    job.loading_until_ns = now_ns + StallBudget::kCreditNs;
    tell(id, LoadMessage{.partition = unit});
    return;
  }
}

void SharedGraph::count_load(uint64_t size_bytes) {
  ++counts_.loaded_partitions;
  counts_.loaded_bytes += size_bytes;
}

// Packed units get the memory that is left when buffers are as many as lately. Of a given budget
// they get what buffers have not used. Only a small margin is left free, because the kernel
// reclaims packed pages when other programs need memory.
void SharedGraph::keep_packed(uint32_t unit, PackedStore::Packed packed) {
  const uint64_t used_max_bytes = buffers_.used_bytes_lately();
  const uint64_t soon_bytes = used_max_bytes - buffers_.used_bytes();
  const uint64_t room_bytes = memory_available_bytes() + packed_.bytes();
  const uint64_t packed_bytes = budget_of(MemoryUse::kPackedBuffers, room_bytes);
  uint64_t budget_bytes = packed_bytes - std::min(packed_bytes, soon_bytes);
  if (options_.is_budget_given) {
    const uint64_t given_bytes = buffers_.budget_bytes();
    budget_bytes = std::min(budget_bytes, given_bytes - std::min(given_bytes, used_max_bytes));
  }
  packed_.keep(unit, std::move(packed), table_.round(), budget_bytes);
}

// Buffers are spare after their last reader. Where units are packed, spare buffers are released,
// because their memory holds more of the graph packed.
void SharedGraph::retire_unused() {
  const PartitionSet unused = table_.unused();
  buffers_.set_spare(unused, table_.round());
  if (packed_.bytes() > 0) release_all(unused);
}

void SharedGraph::store(uint32_t unit, Fd memory, uint64_t size_bytes) {
  unit_bytes_[unit] = size_bytes;
  buffers_.fill(unit, std::move(memory));
  table_.set_loaded(unit, true);
}

void SharedGraph::fail(uint32_t unit, const Error& error) {
  for (const JobId id : table_.give_up(unit)) {
    refuse(id, error);
    table_.take_back(id);
  }
}

}  // namespace graphlane::share
