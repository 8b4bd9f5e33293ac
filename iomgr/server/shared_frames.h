// SharedFrames: tells other processes which frames of a striped file are in memory, as far as the
// server (shared_cache.h) knows. They map it read-only.
//
//   one memfd   | header | a byte a frame … |       1: in memory
//
// The frames themselves are pages of the parts in the kernel's page cache, which all processes
// read. So a stale flag makes a reader slow, not wrong. Readers pin nothing, and the kernel
// reclaims the pages as usual where programs need memory.
//
// Threads: everything but map() and unmap() is safe from any.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "iomgr/base/result.h"
#include "iomgr/base/sys.h"
#include "iomgr/read/extent_file.h"

namespace graphlane {

struct SharedHeader {
  static constexpr uint32_t kMagic = 0x33494c47;  // "GLI3"
  uint32_t magic = kMagic;
  // Processes that read the file now, or did a moment ago.
  std::atomic<uint32_t> process_count{0};
  // The file's.
  uint64_t size_bytes = 0;
  // Its ctime when the server began: with another ctime the flags do not hold.
  int64_t content_time_ns = 0;
  // Not 0: memory has no room for all files that are being read.
  std::atomic<uint32_t> crowded{0};
};

using SharedFlag = std::atomic<uint8_t>;  // whether a frame is in memory. Relaxed: it is a hint
static_assert(SharedFlag::is_always_lock_free);

// The layout for a file of this size.
struct SharedLayout {
  constexpr explicit SharedLayout(uint64_t size_bytes)
      : frame_count((size_bytes + kExtentFrameBytes - 1) / kExtentFrameBytes),
        total_bytes(round_up(sizeof(SharedHeader) + frame_count * sizeof(SharedFlag), kBlockSize)) {
  }
  uint64_t frame_count;
  uint64_t total_bytes;
};

// A reader's mapping.
class SharedFrames {
 public:
  // EINVAL: not a valid memfd. The descriptor may be closed after the call.
  Result<void> map(int fd, uint64_t size_bytes) {
    const SharedLayout layout(size_bytes);
    struct stat st;
    if (sys::fstat(fd, &st) != 0) return last_errno();
    if (static_cast<uint64_t>(st.st_size) != layout.total_bytes) return Errno{EINVAL};
    // Sealed memory keeps its size; another file could shrink, fail or block.
    const int seals = sys::fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return Errno{EINVAL};
    // Not mmap(), which is one of the preload library's hooks.
    const long at = ::syscall(SYS_mmap, nullptr, layout.total_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (at == -1) return last_errno();
    memory_ = reinterpret_cast<const std::byte*>(at);
    layout_ = layout;
    if (header().magic == SharedHeader::kMagic && header().size_bytes == size_bytes) return {};
    unmap();
    return Errno{EINVAL};
  }
  void unmap() {
    if (memory_ == nullptr) return;
    sys::munmap(const_cast<std::byte*>(memory_), layout_.total_bytes);
    memory_ = nullptr;
  }

  explicit operator bool() const { return memory_ != nullptr; }
  const SharedHeader& header() const { return *reinterpret_cast<const SharedHeader*>(memory_); }
  bool has(uint64_t frame) const {
    const auto* flags = reinterpret_cast<const SharedFlag*>(memory_ + sizeof(SharedHeader));
    return flags[frame].load(std::memory_order_relaxed) != 0;
  }

 private:
  const std::byte* memory_ = nullptr;
  SharedLayout layout_{0};
};

}  // namespace graphlane
