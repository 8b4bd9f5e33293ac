// BulkCopy: copies the bytes of a large file with several chunks in flight.
//
//   thread 0   read 0 ──► write 0          read 3 ──► write 3
//   thread 1        read 1 ──► write 1          read 4 …
//   thread 2             read 2 ──► write 2
//
// With `read_in_turn` one thread reads at a time, so that a plain source sees one sequential
// stream. With `write_in_turn` one thread writes at a time, because a plain target's inode lock
// admits only one, and the kernel would spin on it. Chunks of zeros are not written, because the
// target has a hole there.
//
// Memory: thread_count * kCopyChunk, at most 64 MiB.
#pragma once

#include <cstdint>
#include <functional>

#include "iomgr/base/error.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

inline constexpr uint64_t kCopyChunk = 4u << 20;
inline constexpr uint32_t kCopyThreadsMax = 16;

struct BulkCopy {
  uint64_t size_bytes = 0;
  // The most threads, within kCopyThreadsMax, the number of chunks, and the threads available.
  uint32_t thread_count = 2;
  bool read_in_turn = false;
  bool write_in_turn = false;
  // Fills the buffer with the whole range, or returns an error.
  std::function<Outcome<void>(ByteRange, char* buffer)> read = {};
  std::function<Outcome<void>(ByteRange, const char* buffer)> write = {};
  // Optional: the first offset from this one on where the source has data.
  std::function<uint64_t(uint64_t offset)> next_data = {};
  Progress* progress = nullptr;
};

// Returns when all threads have ended. The first error ends the copy, and so does an interrupt.
Outcome<void> run(const BulkCopy& copy);

}  // namespace graphlane
