#include "iomgr/mapped_cache.h"

#include <algorithm>
#include <atomic>

#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

constexpr uint16_t kAllZero = UINT16_MAX;

// Where the first byte of the page is that is not zero.
uint16_t note_of(std::span<const std::byte> page) {
  const auto found =
      std::find_if(page.begin(), page.end(), [](std::byte byte) { return byte != std::byte{0}; });
  return found == page.end() ? kAllZero : static_cast<uint16_t>(found - page.begin());
}

}  // namespace

MappedCache::~MappedCache() {
  if (memory_ != nullptr) sys::munmap(memory_, memory_bytes_);
}

Result<void> MappedCache::map(uint64_t bytes, const CacheOptions& options, bool yields) {
  const uint64_t frames = bytes / options.frame_bytes * options.frame_bytes;
  const uint64_t metadata =
      round_up(FrameCache::metadata_bytes(frames / options.frame_bytes), kBlockSize);
  const uint64_t notes = yields ? frames / kBlockSize * sizeof(uint16_t) : 0;
  void* const memory = sys::map_memory(frames + metadata + notes);
  if (memory == nullptr) return Errno{ENOMEM};
  memory_bytes_ = frames + metadata + notes;
  (void)sys::madvise(memory, memory_bytes_, MADV_WIPEONFORK);
  (void)sys::madvise(memory, memory_bytes_, MADV_DONTDUMP);
  // A huge page has parts of several frames, and would go as one.
  if (yields) (void)sys::madvise(memory, frames, MADV_NOHUGEPAGE);
  auto* const first = static_cast<std::byte*>(memory);
  Result<void> made = cache_.init(options, {first, frames}, {first + frames, metadata});
  if (!made) {
    sys::munmap(memory, memory_bytes_);
    return made;
  }
  memory_ = memory;
  if (yields) notes_ = reinterpret_cast<uint16_t*>(first + frames + metadata);
  return made;
}

uint16_t* MappedCache::notes_of(const FrameHold& hold) const {
  return notes_ + hold.frame() * (cache_.frame_bytes() / kBlockSize);
}

// By writing to each page: the kernel then takes none of them, also while a device does.
void MappedCache::claim(const Fill& fill) {
  if (notes_ == nullptr) return;
  const std::span<std::byte> bytes = fill.bytes();
  for (uint64_t at = 0; at < bytes.size(); at += kBlockSize) {
    *const_cast<volatile std::byte*>(&bytes[at]) = std::byte{0};
  }
}

void MappedCache::leave(const Fill& fill, uint64_t valid_bytes) {
  if (notes_ == nullptr) return;
  const std::span<std::byte> bytes = fill.bytes();
  uint16_t* note = notes_of(fill);
  for (uint64_t at = 0; at < valid_bytes; at += kBlockSize) {
    *note++ = note_of(bytes.subspan(at, std::min(kBlockSize, valid_bytes - at)));
  }
  (void)sys::madvise(bytes.data(), bytes.size(), MADV_FREE);
}

bool MappedCache::lost(const Pin& pin, uint64_t begin, uint64_t length_bytes) {
  if (notes_ == nullptr || length_bytes == 0) return false;
  // What was copied was loaded before what follows.
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::span<const std::byte> bytes = pin.bytes();
  const uint16_t* const notes = notes_of(pin);
  for (uint64_t page = begin / kBlockSize; page * kBlockSize < begin + length_bytes; ++page) {
    if (notes[page] == kAllZero) continue;
    const volatile std::byte& noted = bytes[page * kBlockSize + notes[page]];
    if (noted != std::byte{0}) continue;
    cache_.forget(pin);
    return true;
  }
  return false;
}

}  // namespace graphlane
