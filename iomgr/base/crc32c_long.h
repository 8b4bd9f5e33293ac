// CRC-32C of data that is long or comes in pieces, by the processor's own instruction where it has one.
// Headers of a few KiB have crc32c.h.
//
//   crc32c_extend(crc32c_extend(0, a, n), a + n, m) == crc32c(a, n + m)
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace graphlane {

// `crc` is the CRC of the bytes before, 0 if there are none.
uint32_t crc32c_extend(uint32_t crc, const void* data, size_t length_bytes);

// The CRC of each of `count` blocks that lie one behind the other. `block_bytes` is a multiple of 8.
// Several at a time: the instruction takes three cycles, but one can begin in each.
void crc32c_blocks(const void* data, size_t block_bytes, uint32_t count, uint32_t* crcs);

}  // namespace graphlane
