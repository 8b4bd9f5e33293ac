#include "iomgr/mapped_cache.h"

#include "iomgr/base/sys.h"

namespace graphlane {

MappedCache::~MappedCache() {
  if (memory_ != nullptr) sys::munmap(memory_, memory_bytes_);
}

Result<void> MappedCache::map(uint64_t bytes, const CacheOptions& options) {
  const uint64_t frames = bytes / options.frame_bytes * options.frame_bytes;
  const uint64_t metadata =
      round_up(FrameCache::metadata_bytes(frames / options.frame_bytes), kBlockSize);
  void* const memory = sys::map_memory(frames + metadata);
  if (memory == nullptr) return Errno{ENOMEM};
  memory_bytes_ = frames + metadata;
  (void)sys::madvise(memory, memory_bytes_, MADV_WIPEONFORK);
  (void)sys::madvise(memory, memory_bytes_, MADV_DONTDUMP);
  auto* const first = static_cast<std::byte*>(memory);
  Result<void> made = cache_.init(options, {first, frames}, {first + frames, metadata});
  if (made) memory_ = memory;
  else sys::munmap(memory, memory_bytes_);
  return made;
}

}  // namespace graphlane
