// CRC-32C of data that is long or comes in pieces, by the processor's instruction if it has one.
// For headers of a few KiB see crc32c.h.
//
//   crc32c_extend(crc32c_extend(0, a, n), a + n, m) == crc32c(a, n + m)
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace graphlane {

// `crc` is the CRC of the bytes before; 0: there are none.
uint32_t crc32c_extend(uint32_t crc, const void* data, size_t length_bytes);

// The CRC of each of `count` adjacent blocks. `block_bytes` is a multiple of 8. Computes several at
// a time, because the instruction has a latency of three cycles and a throughput of one.
void crc32c_blocks(const void* data, size_t block_bytes, uint32_t count, uint32_t* crcs);

}  // namespace graphlane
