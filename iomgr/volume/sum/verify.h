// verify(): whether bytes that were read from a part match its checksums.
//
//   sum of the memory == sum in the file            good
//
//   else  read the header, the region, the sum, the block, and the header again:
//
//           not covered, or a dirty region            unverified: the block may have changed since
//
//           the header has changed meanwhile          repeat
//
//           equal now                                 good: a writer was active, or the device erred
//                                                     once; the memory gets the block
//
//           still unequal                             failed
//
// The block is read a second time because the program may be writing to its buffer. A block that is
// only partly in the caller's memory is read as a whole, verified, and copied from there.
//
// Threads: everything is safe from any.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "iomgr/volume/sum/sum_file.h"

namespace graphlane {

// Blocks of 4 KiB.
struct SumCounts {
  uint64_t verified = 0;
  uint64_t unverified = 0;  // no checksum, or one voided by a writer
  uint64_t failed = 0;
};

// Is told each failed block, in ascending order.
class FailedBlocks {
 public:
  virtual void failed(uint64_t part_offset) = 0;

 protected:
  ~FailedBlocks() = default;
};

// `part_fd` is the descriptor that the bytes were read by. `covered_bytes` caches
// SumHeader::covered_bytes, and is updated. The memory holds `length_bytes` bytes of the part from
// `part_offset` on, at most what the iovecs have. 0, or an errno: the `.sum` or the part cannot be
// read.
int verify_bytes(const SumFile& sums, int part_fd, uint64_t part_offset,
                 std::span<const iovec> memory, uint64_t length_bytes,
                 std::atomic<uint64_t>* covered_bytes, SumCounts* counts, FailedBlocks* failed);

// Whether an unchanged block matches its sum, whatever its region says. For the only writer of the
// file. An errno as above.
Result<bool> matches_sum(const SumFile& sums, int part_fd, uint64_t block, uint64_t covered_bytes);

}  // namespace graphlane
