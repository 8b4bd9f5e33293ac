// SharedImage: a striped file in memory that a server fills and other processes map
// read-only; in one generation, frame by frame.
//
//   one memfd   | header | a word a frame … | frame 0 | frame 1 |  hole  | frame 3 | …
//                                             ▲ a page's boundary: the file, byte for byte
//
// A frame's word is 0 while it is not there, else how often it has come. Who copies looks at
// the word before and after: if both are the same, so were the bytes (a sequence lock). So
// readers hold nothing: one that is killed, or stopped, is in nobody's way.
//
// Threads: everything but map() and unmap() is safe from any.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "iomgr/base/result.h"
#include "iomgr/base/sys.h"
#include "iomgr/extent_file.h"

namespace graphlane {

struct SharedHeader {
  static constexpr uint32_t kMagic = 0x31494c47;  // "GLI1"
  uint32_t magic = kMagic;
  std::atomic<uint32_t> process_count{0};  // that read the file now, or did a moment ago
  uint64_t size_bytes = 0;                 // of the file
  int64_t content_time_ns = 0;             // its ctime when the server began: who sees another
                                           // one reads something else
};

using SharedWord = std::atomic<uint32_t>;
static_assert(SharedWord::is_always_lock_free);

// Where what is.
struct SharedLayout {
  constexpr explicit SharedLayout(uint64_t size_bytes)
      : frame_count((size_bytes + kExtentFrameBytes - 1) / kExtentFrameBytes),
        image_offset(round_up(sizeof(SharedHeader) + frame_count * sizeof(SharedWord), kBlockSize)),
        total_bytes(image_offset + round_up(size_bytes, kBlockSize)) {}
  uint64_t frame_count;
  uint64_t image_offset;
  uint64_t total_bytes;
};

// As a reader has it.
class SharedImage {
 public:
  // EINVAL: it is not what it is said to be. The descriptor may be closed then.
  Result<void> map(int fd, uint64_t size_bytes) {
    const SharedLayout layout(size_bytes);
    struct stat st;
    if (sys::fstat(fd, &st) != 0) return last_errno();
    if (static_cast<uint64_t>(st.st_size) != layout.total_bytes) return Errno{EINVAL};
    // The system call: mmap is one of the preload library's hooks.
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

  // Copies `range`, which lies within one frame and the file. False: it is not there (any
  // more), and `to` may hold anything.
  bool copy(ByteRange range, void* to) const {
    const SharedWord& word = words()[range.offset / kExtentFrameBytes];
    // Acquire: who sees the word sees the bytes that it stands for.
    const uint32_t before = word.load(std::memory_order_acquire);
    if (before == 0) return false;
    std::memcpy(to, memory_ + layout_.image_offset + range.offset, range.length_bytes);
    // The copy comes before the second look.
    std::atomic_thread_fence(std::memory_order_acquire);
    return word.load(std::memory_order_relaxed) == before;
  }

 private:
  const SharedWord* words() const {
    return reinterpret_cast<const SharedWord*>(memory_ + sizeof(SharedHeader));
  }

  const std::byte* memory_ = nullptr;
  SharedLayout layout_{0};
};

}  // namespace graphlane
