#include "graphfmt/codec_varint.h"

#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace graphlane {
namespace {

constexpr uint8_t kVarintTop = 0x80;
constexpr size_t kVarintBytesMax = 5;

// What is left of a list that is being decoded.
struct VarintCursor {
  const uint8_t* at;
  const uint8_t* end;
  uint32_t* list;
  uint32_t* list_end;
  uint64_t previous = 0;
  uint64_t limit;
};

// The rest, byte by byte. False: damaged.
bool decode_varint_rest(VarintCursor& c) {
  if (c.list == c.list_end) return c.at == c.end;
  if (c.at == c.end) return false;
  uint8_t top = *c.at & kVarintTop;
  for (; c.list != c.list_end; ++c.list, top ^= kVarintTop) {
    if (c.at == c.end || (*c.at & kVarintTop) != top) return false;
    uint64_t delta = 0;
    do {
      delta = delta << 7 | (*c.at++ ^ top);
      if (delta >> 32 != 0) return false;
    } while (c.at != c.end && (*c.at & kVarintTop) == top);
    c.previous += delta;
    if (c.previous >= c.limit) return false;
    *c.list = static_cast<uint32_t>(c.previous);
  }
  return c.at == c.end;
}

#if defined(__x86_64__)

// As many whole windows of 64 bytes as there are. A window begins with a number, and the number that its last
// bytes belong to is left for the next. False: damaged.
__attribute__((target("avx2,bmi,bmi2"))) bool decode_varint_windows(VarintCursor& c, size_t slack_bytes) {
  constexpr ptrdiff_t kWindow = 64;
  // A number that begins in the window is loaded as 8 bytes.
  const ptrdiff_t behind = slack_bytes >= 8 ? 0 : 8;
  while (c.end - c.at >= kWindow + behind && c.list_end - c.list >= kWindow) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(c.at));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(c.at + 32));
    const uint64_t tops = static_cast<uint32_t>(_mm256_movemask_epi8(low)) |
                          static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(high))) << 32;
    uint64_t starts = (tops ^ tops << 1) | 1;
    const int count = std::popcount(starts) - 1;
    uint64_t previous = c.previous;
    uint64_t too_long = 0;
    uint64_t start = 0;
    for (int i = 0; i < count; ++i) {
      starts = _blsr_u64(starts);
      const uint64_t next = _tzcnt_u64(starts);
      const uint64_t length = next - start;
      uint64_t number;
      std::memcpy(&number, c.at + start, sizeof number);
      number = __builtin_bswap64(number) >> (-8 * length & 63);
      previous += _pext_u64(number, 0x7f7f7f7f7f);
      too_long |= kVarintBytesMax - length;
      c.list[i] = static_cast<uint32_t>(previous);
      start = next;
    }
    // With five bytes a difference may have 35 bits: a sum of 63 such cannot overflow.
    if (count == 0 || too_long >> 63 != 0 || previous >= c.limit) return false;
    c.previous = previous;
    c.at += start;
    c.list += count;
  }
  return true;
}

bool can_decode_varint_windows() {
  static const bool can = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  return can;
}

#endif

class VarintCodec final : public ListCodec {
 public:
  CodecKind kind() const override { return CodecKind::kVarint; }
  size_t bytes_max(size_t count) const override { return count * kVarintBytesMax; }

  size_t encode(std::span<const uint32_t> list, uint8_t* bytes) const override {
    uint8_t* to = bytes;
    uint32_t previous = 0;
    uint8_t top = 0;
    for (const uint32_t neighbour : list) {
      const uint32_t delta = neighbour - previous;
      previous = neighbour;
      const int groups = (std::bit_width(delta | 1) + 6) / 7;
      for (int shift = 7 * (groups - 1); shift >= 0; shift -= 7) {
        *to++ = static_cast<uint8_t>((delta >> shift & 0x7f) | top);
      }
      top ^= kVarintTop;
    }
    return static_cast<size_t>(to - bytes);
  }

  Result<size_t> count(std::span<const uint8_t> bytes) const override {
    if (bytes.empty()) return size_t{0};
    if ((bytes[0] & kVarintTop) != 0) return Errno{EIO};
    size_t changes = 0;
    for (size_t i = 1; i < bytes.size(); ++i) changes += (bytes[i] ^ bytes[i - 1]) >> 7;
    return changes + 1;
  }

  Result<void> decode(std::span<const uint8_t> bytes, std::span<uint32_t> list, uint64_t limit,
                      [[maybe_unused]] size_t slack_bytes) const override {
    if (!bytes.empty() && (bytes[0] & kVarintTop) != 0) return Errno{EIO};
    VarintCursor cursor{.at = bytes.data(),
                        .end = bytes.data() + bytes.size(),
                        .list = list.data(),
                        .list_end = list.data() + list.size(),
                        .limit = limit};
#if defined(__x86_64__)
    if (bytes.size() >= 72 && can_decode_varint_windows() && !decode_varint_windows(cursor, slack_bytes)) {
      return Errno{EIO};
    }
#endif
    if (!decode_varint_rest(cursor)) return Errno{EIO};
    return {};
  }
};

}  // namespace

const ListCodec& varint_codec() {
  static const VarintCodec codec;
  return codec;
}

}  // namespace graphlane
