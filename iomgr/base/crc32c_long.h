// crc32c_extend: CRC-32C of data that comes in pieces, by the processor's own instruction where it has one.
// For data; headers of a few KiB that the preload library reads have crc32c.h.
//
//   crc32c_extend(crc32c_extend(0, a, n), a + n, m) == crc32c(a, n + m)
#pragma once

#include <cstddef>
#include <cstdint>

namespace graphlane {

// `crc` is the CRC of the bytes before, 0 if there are none.
uint32_t crc32c_extend(uint32_t crc, const void* data, size_t length_bytes);

}  // namespace graphlane
