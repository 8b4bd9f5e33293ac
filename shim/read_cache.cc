#include "shim/read_cache.h"

#include <new>

#include "iomgr/base/sys.h"
#include "shim/held_signals.h"
#include "shim/queue_pool.h"
#include "shim/settings.h"

namespace graphlane {
namespace {

// No destructor of ours runs while other threads may still read.
alignas(ExtentCache) unsigned char storage[sizeof(ExtentCache)];
std::atomic<ExtentCache*> ready{nullptr};
std::atomic<bool> begun{false};

// Null: there is none, or somebody is just making it.
ExtentCache* read_cache() {
  if (!is_first_process()) return nullptr;
  ExtentCache* cache = ready.load(std::memory_order_acquire);
  if (cache != nullptr || settings().cache.budget_bytes == 0) return cache;
  if (begun.exchange(true, std::memory_order_relaxed)) return nullptr;
  cache = new (storage) ExtentCache();
  if (!cache->start(settings().cache)) return nullptr;  // tried once
  ready.store(cache, std::memory_order_release);
  return cache;
}

ExtentFile extents_of(const OpenFileRef& file, uint64_t generation) {
  return {.file_id = file->file_id,
          .generation = generation,
          .size_bytes = file.size(),
          .map = file->map,
          .parts = *file->parts};
}

}  // namespace

bool is_there(void* buffer, size_t count) {
  const auto begin = reinterpret_cast<uintptr_t>(buffer) / kBlockSize * kBlockSize;
  const size_t length = reinterpret_cast<uintptr_t>(buffer) + count - begin;
  return sys::madvise(reinterpret_cast<void*>(begin), length, MADV_POPULATE_WRITE) == 0;
}

std::optional<size_t> read_cached(const OpenFileRef& file, ByteRange range, void* buffer,
                                  PartMover& mover) {
  ExtentCache* const cache = read_cache();
  const uint64_t generation = cache == nullptr ? 0 : file.content_generation();
  if (generation == 0 || !is_there(buffer, range.length_bytes)) return {};
  const HeldSignals signals;  // a handler may read, too, and leave by siglongjmp()
  return cache->read(extents_of(file, generation), range, buffer, mover);
}

void give_way_to_sharing(bool shares) {
  static std::atomic<bool> gave{false};
  ExtentCache* const cache = ready.load(std::memory_order_acquire);
  if (cache == nullptr || gave.load(std::memory_order_relaxed) == shares ||
      gave.exchange(shares, std::memory_order_relaxed) == shares) {
    return;
  }
  const HeldSignals signals;
  if (shares) cache->pause();
  else cache->resume();
}

void will_need_cached(const OpenFileRef& file, ByteRange range, PartMover& mover) {
  ExtentCache* const cache = read_cache();
  const uint64_t generation = cache == nullptr ? 0 : file.content_generation();
  if (generation == 0) return;
  const HeldSignals signals;
  cache->will_need(extents_of(file, generation), range, mover);
}

ExtentCacheStats read_cache_stats() {
  const ExtentCache* cache = ready.load(std::memory_order_acquire);
  return cache == nullptr ? ExtentCacheStats{} : cache->stats();
}

}  // namespace graphlane
