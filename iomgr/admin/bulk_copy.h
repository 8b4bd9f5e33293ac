// BulkCopy: moves the bytes of a large file, several chunks in flight.
//
//   thread 0   read 0 ──► write 0          read 3 ──► write 3
//   thread 1        read 1 ──► write 1          read 4 …
//   thread 2             read 2 ──► write 2
//
// With `read_in_turn` one thread reads at a time, so that a plain source sees one
// sequential stream whatever the number of writers. With `write_in_turn` one
// writes at a time: a plain target's inode lock lets no more in, and the kernel
// would spin on it. Chunks of nothing but zeros
// are not written: what the target has there is a hole already.
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
  // At most: clipped to kCopyThreadsMax, to the chunks there are, and to the threads to be had.
  uint32_t thread_count = 2;
  bool read_in_turn = false;
  bool write_in_turn = false;
  // Fills the buffer with all of the range, or says why not.
  std::function<Outcome<void>(ByteRange, char* buffer)> read;
  std::function<Outcome<void>(ByteRange, const char* buffer)> write;
  // Optional: the first offset from here on where the source has data.
  std::function<uint64_t(uint64_t offset)> next_data;
  Progress* progress = nullptr;
};

// Returns when no thread is left. The first error ends the copy, and so does an
// interrupt.
Outcome<void> run(const BulkCopy& copy);

}  // namespace graphlane
