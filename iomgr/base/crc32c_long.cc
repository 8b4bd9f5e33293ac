#include "iomgr/base/crc32c_long.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "iomgr/base/crc32c.h"

namespace graphlane {
namespace {

uint32_t crc32c_by_table(uint32_t crc, const uint8_t* data, size_t length) {
  for (size_t i = 0; i < length; ++i) {
    crc = (crc >> 8) ^ internal::kCrc32cTable[(crc ^ data[i]) & 0xff];
  }
  return crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) uint32_t crc32c_by_instruction(uint32_t crc, const uint8_t* data,
                                                                 size_t length) {
  uint64_t wide = crc;
  for (; length >= sizeof wide; length -= sizeof wide, data += sizeof wide) {
    uint64_t word;
    std::memcpy(&word, data, sizeof word);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; length > 0; --length) crc = _mm_crc32_u8(crc, *data++);
  return crc;
}

#endif

}  // namespace

uint32_t crc32c_extend(uint32_t crc, const void* data, size_t length_bytes) {
  const uint8_t* const bytes = static_cast<const uint8_t*>(data);
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ~crc32c_by_instruction(~crc, bytes, length_bytes);
#endif
  return ~crc32c_by_table(~crc, bytes, length_bytes);
}

}  // namespace graphlane
