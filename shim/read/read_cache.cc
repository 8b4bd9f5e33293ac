#include "shim/read/read_cache.h"

#include <new>

#include "iomgr/base/futex.h"
#include "iomgr/base/process/blocked_signals.h"
#include "iomgr/base/process/memory_map.h"
#include "shim/base/settings.h"
#include "shim/read/queues.h"

namespace graphlane::shim {
namespace {

// Has no destructor, because other threads may still read at the exit.
alignas(ExtentCache) unsigned char storage[sizeof(ExtentCache)];
std::atomic<ExtentCache*> ready_cache{nullptr};
std::atomic<bool> begun{false};

// How long the process still counts as sharing after its last shared read.
constexpr int64_t kSharingLastsMs = 1000;

// Null: there is none, or another thread is making it.
ExtentCache* read_cache() {
  if (!is_first_process()) return nullptr;
  ExtentCache* cache = ready_cache.load(std::memory_order_acquire);
  if (cache != nullptr || settings().cache.budget_bytes == 0) return cache;
  if (begun.exchange(true, std::memory_order_relaxed)) return nullptr;
  cache = new (storage) ExtentCache();
  if (!cache->start(settings().cache)) return nullptr;  // not tried again
  ready_cache.store(cache, std::memory_order_release);
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

std::optional<size_t> read_cached(const OpenFileRef& file, ByteRange range, void* buffer,
                                  IoEngine& engine) {
  ExtentCache* const cache = read_cache();
  const uint64_t generation = cache == nullptr ? 0 : file.content_generation();
  if (generation == 0 || !populate_writable(buffer, range.length_bytes)) return {};
  const BlockedSignals signals;  // a handler may also read, and leave by siglongjmp()
  return cache->read(extents_of(file, generation), range, buffer, engine);
}

void follow_sharing(bool shares, int64_t now_ms, IoEngine& engine) {
  static std::atomic<bool> gave{false};
  static std::atomic<int64_t> shared_ms{0};
  static FutexLock changing;  // held while the cache follows `gave`
  ExtentCache* const cache = ready_cache.load(std::memory_order_acquire);
  if (cache == nullptr) return;
  if (shares) shared_ms.store(now_ms, std::memory_order_relaxed);
  if (gave.load(std::memory_order_relaxed) == shares) return;
  // It may read several files in turn, some of them alone.
  if (!shares && now_ms - shared_ms.load(std::memory_order_relaxed) < kSharingLastsMs) return;
  const BlockedSignals signals;
  if (!changing.lock_patiently()) return;
  if (gave.load(std::memory_order_relaxed) != shares) {
    if (shares) {
      cache->pause(engine);
    } else {
      cache->resume();
    }
    gave.store(shares, std::memory_order_relaxed);
  }
  changing.unlock();
}

void will_need_cached(const OpenFileRef& file, ByteRange range, IoEngine& engine) {
  ExtentCache* const cache = read_cache();
  const uint64_t generation = cache == nullptr ? 0 : file.content_generation();
  if (generation == 0) return;
  const BlockedSignals signals;
  cache->will_need(extents_of(file, generation), range, engine);
}

ExtentCacheStats read_cache_stats() {
  const ExtentCache* cache = ready_cache.load(std::memory_order_acquire);
  return cache == nullptr ? ExtentCacheStats{} : cache->stats();
}

}  // namespace graphlane::shim
