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

// Folding: carry-less multiplication moves a piece of 16 bytes over the next `bits` bits, so that the
// rest modulo the polynomial stays the same (Gopal et al., Intel, "Fast CRC Computation Using
// PCLMULQDQ", 2009). Here four registers of 64 bytes are folded over 256 bytes in each step.

// x^n modulo the polynomial, with reflected bits, and shifted by one as a product of such numbers needs it.
constexpr int64_t power_of_x(uint32_t n) {
  uint32_t rest = 0x80000000u;
  for (uint32_t i = 0; i < n; ++i) rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0x82f63b78u : 0u);
  return int64_t{rest} << 1;
}

struct FoldOver {
  int64_t low, high;  // the factors of a piece's first and second 8 bytes
};
constexpr FoldOver fold_over(uint32_t bits) {
  return {power_of_x(bits + 32), power_of_x(bits - 32)};
}
constexpr FoldOver kOver256Bytes = fold_over(2048), kOver64Bytes = fold_over(512),
                   kOver16Bytes = fold_over(128);

constexpr size_t kFoldStep = 256;

#define GRAPHLANE_FOLDING __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2")))

GRAPHLANE_FOLDING inline __m512i fold(__m512i piece, __m512i over, __m512i next) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(piece, over, 0x00),
                                   _mm512_clmulepi64_epi128(piece, over, 0x11), next, kXorOfThree);
}

GRAPHLANE_FOLDING inline __m128i fold(__m128i piece, __m128i over, __m128i next) {
  return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(piece, over, 0x00),
                                     _mm_clmulepi64_si128(piece, over, 0x11)),
                       next);
}

GRAPHLANE_FOLDING inline __m128i factors(FoldOver over) {
  return _mm_set_epi64x(over.high, over.low);
}

GRAPHLANE_FOLDING inline __m512i four_factors(FoldOver over) {
  return _mm512_set_epi64(over.high, over.low, over.high, over.low, over.high, over.low, over.high,
                          over.low);
}

// `length` is a multiple of kFoldStep, and not 0.
GRAPHLANE_FOLDING uint32_t crc32c_by_folding(uint32_t crc, const uint8_t* data, size_t length) {
  const __m512i over_256 = four_factors(kOver256Bytes);
  const __m512i over_64 = four_factors(kOver64Bytes);
  const __m128i over_16 = factors(kOver16Bytes);
  __m512i a = _mm512_xor_si512(_mm512_loadu_si512(data),
                               _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
  __m512i b = _mm512_loadu_si512(data + 64);
  __m512i c = _mm512_loadu_si512(data + 128);
  __m512i d = _mm512_loadu_si512(data + 192);
  for (const uint8_t *at = data + kFoldStep, *end = data + length; at != end; at += kFoldStep) {
    a = fold(a, over_256, _mm512_loadu_si512(at));
    b = fold(b, over_256, _mm512_loadu_si512(at + 64));
    c = fold(c, over_256, _mm512_loadu_si512(at + 128));
    d = fold(d, over_256, _mm512_loadu_si512(at + 192));
  }
  a = fold(fold(fold(a, over_64, b), over_64, c), over_64, d);
  __m128i pieces[4];
  _mm512_storeu_si512(pieces, a);
  __m128i piece = pieces[0];
  for (size_t i = 1; i < 4; ++i) piece = fold(piece, over_16, pieces[i]);
  const uint64_t half = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_extract_epi64(piece, 0)));
  return static_cast<uint32_t>(
      _mm_crc32_u64(half, static_cast<uint64_t>(_mm_extract_epi64(piece, 1))));
}

#undef GRAPHLANE_FOLDING

enum class Unit : uint8_t { kNone, kInstruction, kFolding };

Unit unit() {
  static const Unit found = [] {
    if (!__builtin_cpu_supports("sse4.2")) return Unit::kNone;
    const bool folds = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul");
    return folds ? Unit::kFolding : Unit::kInstruction;
  }();
  return found;
}

// The inverted CRC, as the functions above have it.
uint32_t extend(uint32_t crc, const uint8_t* data, size_t length) {
  if (unit() == Unit::kNone) return crc32c_by_table(crc, data, length);
  const size_t folded = unit() == Unit::kFolding ? length / kFoldStep * kFoldStep : 0;
  if (folded > 0) crc = crc32c_by_folding(crc, data, folded);
  return crc32c_by_instruction(crc, data + folded, length - folded);
}

#else

uint32_t extend(uint32_t crc, const uint8_t* data, size_t length) {
  return crc32c_by_table(crc, data, length);
}

#endif

}  // namespace

uint32_t crc32c_extend(uint32_t crc, const void* data, size_t length_bytes) {
  return ~extend(~crc, static_cast<const uint8_t*>(data), length_bytes);
}

void crc32c_blocks(const void* data, size_t block_bytes, uint32_t count, uint32_t* crcs) {
  const uint8_t* const bytes = static_cast<const uint8_t*>(data);
  uint32_t done = 0;
#if defined(__x86_64__)
  for (; unit() == Unit::kInstruction && done + 4 <= count; done += 4) {
    four_by_instruction(bytes + done * block_bytes, block_bytes, crcs + done);
  }
#endif
  for (; done < count; ++done)
    crcs[done] = crc32c_extend(0, bytes + done * block_bytes, block_bytes);
}

}  // namespace graphlane
