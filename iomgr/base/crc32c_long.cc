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

// Computes four blocks at once.
__attribute__((target("sse4.2"))) void four_by_instruction(const uint8_t* data, size_t block_bytes,
                                                           uint32_t* crcs) {
  uint64_t wide[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
  for (size_t at = 0; at < block_bytes; at += sizeof(uint64_t)) {
    for (size_t i = 0; i < 4; ++i) {
      uint64_t word;
      std::memcpy(&word, data + i * block_bytes + at, sizeof word);
      wide[i] = _mm_crc32_u64(wide[i], word);
    }
  }
  for (size_t i = 0; i < 4; ++i) crcs[i] = ~static_cast<uint32_t>(wide[i]);
}

#endif

bool has_instruction() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("sse4.2");
  return has;
#else
  return false;
#endif
}

}  // namespace

uint32_t crc32c_extend(uint32_t crc, const void* data, size_t length_bytes) {
  const uint8_t* const bytes = static_cast<const uint8_t*>(data);
#if defined(__x86_64__)
  if (has_instruction()) return ~crc32c_by_instruction(~crc, bytes, length_bytes);
#endif
  return ~crc32c_by_table(~crc, bytes, length_bytes);
}

void crc32c_blocks(const void* data, size_t block_bytes, uint32_t count, uint32_t* crcs) {
  const uint8_t* const bytes = static_cast<const uint8_t*>(data);
  uint32_t done = 0;
#if defined(__x86_64__)
  for (; has_instruction() && done + 4 <= count; done += 4) {
    four_by_instruction(bytes + done * block_bytes, block_bytes, crcs + done);
  }
#endif
  for (; done < count; ++done) {
    crcs[done] = crc32c_extend(0, bytes + done * block_bytes, block_bytes);
  }
}

}  // namespace graphlane
