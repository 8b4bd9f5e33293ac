#include "graphfmt/codec/codec_varint.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace graphlane::graphfmt {
namespace {

constexpr uint8_t kVarintTop = 0x80;
constexpr size_t kVarintBytesMax = 5;

// The rest of a list that is being decoded.
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

// As many whole windows of 64 bytes as there are. A window begins with a number, and the number
// that its last bytes belong to is left for the next. False: damaged.
__attribute__((target("avx2,bmi,bmi2"))) bool decode_varint_windows(VarintCursor& c,
                                                                    size_t slack_bytes) {
  constexpr ptrdiff_t kWindow = 64;
  // A number that begins in the window is loaded as 8 bytes.
  const ptrdiff_t behind = slack_bytes >= 8 ? 0 : 8;
  while (c.end - c.at >= kWindow + behind && c.list_end - c.list >= kWindow) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(c.at));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(c.at + 32));
    const uint64_t tops = static_cast<uint32_t>(_mm256_movemask_epi8(low)) |
                          static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(high)))
                              << 32;
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

constexpr size_t kVarintWindow = 64;

// Also for the lambdas within.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512vbmi2,bmi,bmi2,popcnt")

// The bytes among the next 64 that begin a list. Finds the first number of each list, or checks it
// by degrees.
struct VarintListStarts {
  std::span<const uint32_t> lengths;
  std::span<const uint32_t> degrees = {};
  uint32_t* told = nullptr;  // receives the first number of each list; null: checked by `degrees`
  size_t marked = 0;         // lists with a marked begin
  uint64_t next_byte = 0;    // the begin of the next one
  size_t checked = 0;        // lists with a known first number
  uint64_t next_number = 0;  // the first number of the next one, by the degrees

  uint64_t mark(uint64_t window) {
    uint64_t starts = 0;
    for (; marked < lengths.size() && next_byte < window + kVarintWindow; ++marked) {
      starts |= uint64_t{1} << (next_byte - window);
      next_byte += lengths[marked];
    }
    return starts;
  }
  bool check(uint64_t list_starts, uint64_t number_starts, uint64_t first_number) {
    uint64_t bad = 0;
    for (; list_starts != 0; list_starts &= list_starts - 1) {
      const uint64_t before = number_starts & ((list_starts & -list_starts) - 1);
      const uint64_t number = first_number + static_cast<uint64_t>(std::popcount(before));
      if (told != nullptr) {
        told[checked++] = static_cast<uint32_t>(number);
        continue;
      }
      bad |= number ^ next_number;
      next_number += degrees[checked++];
    }
    return bad == 0;
  }
};

// The differences of all numbers of all lists. A window of 64 bytes at a time: the last bytes of
// its numbers are moved together, so are those one before the last, and so on; then each number's
// are put together. How many there are; none: damaged. With degrees, exactly deltas.size().
std::optional<size_t> decode_varint_deltas(std::span<const uint8_t> bytes, VarintListStarts lists,
                                           std::span<uint32_t> deltas) {
  constexpr size_t kBefore = kVarintBytesMax - 1;
  const __m512i low_bits = _mm512_set1_epi8(0x7f);
  const size_t size = bytes.size();
  uint8_t edge[kBefore + kVarintWindow];  // a window of which not all can be loaded
  const auto window_at = [&](size_t at) -> const uint8_t* {
    if (at >= kBefore && at + kVarintWindow <= size) return bytes.data() + at;
    std::memset(edge, 0, sizeof edge);
    const size_t before = std::min(at, kBefore);
    std::memcpy(edge + kBefore - before, bytes.data() + (at - before),
                before + std::min(kVarintWindow, size - at));
    return edge + kBefore;
  };
  uint32_t* to = deltas.data();
  uint32_t* const to_end = to + deltas.size();
  bool is_sound = true;
  uint64_t top_before = 0;        // of the byte before the window, in bit 0
  uint64_t continued_before = 0;  // of the window before: bytes that do not begin a number
  // The bytes of the next window that begin a number: the top bit changes there, or a list starts.
  const auto number_starts = [&](size_t at, uint64_t list_starts) {
    const uint64_t tops =
        static_cast<uint64_t>(_mm512_movepi8_mask(_mm512_loadu_si512(window_at(at))));
    const uint64_t starts = (tops ^ (tops << 1 | top_before)) | list_starts;
    top_before = tops >> 63;
    // A list's first number has the top bit 0.
    is_sound &= (tops & list_starts) == 0;
    const size_t there = size - at;
    return there >= kVarintWindow ? starts
                                  : (starts & ((uint64_t{1} << there) - 1)) | uint64_t{1} << there;
  };
  uint64_t list_starts = lists.mark(0);
  uint64_t starts = size == 0 ? 0 : number_starts(0, list_starts);
  for (size_t at = 0; at < size; at += kVarintWindow) {
    const size_t there = std::min(kVarintWindow, size - at);
    const uint64_t in_window = there == kVarintWindow ? ~uint64_t{0} : (uint64_t{1} << there) - 1;
    // One may have begun before the window and not ended.
    const uint64_t begun =
        static_cast<uint64_t>(to - deltas.data()) + (at == 0 || (starts & 1) != 0 ? 0 : 1);
    if (!is_sound || !lists.check(list_starts, starts, begun)) return std::nullopt;
    const uint8_t* window = window_at(at);
    alignas(64) uint8_t parts[kVarintBytesMax][kVarintWindow];
    const uint64_t continued[kVarintBytesMax] = {
        ~uint64_t{0}, ~starts, ~starts << 1 | continued_before >> 63,
        ~starts << 2 | continued_before >> 62, ~starts << 3 | continued_before >> 61};
    const uint64_t has_two = ~starts;
    const uint64_t has_three = has_two & continued[2];
    const uint64_t has_four = has_three & continued[3];
    const uint64_t has_five = has_four & continued[4];
    const uint64_t has_six = has_five & (~starts << 4 | continued_before >> 60);
    continued_before = ~starts;
    const __m512i last = _mm512_loadu_si512(window);
    const __m512i second = _mm512_maskz_loadu_epi8(has_two, window - 1);
    const __m512i third = _mm512_maskz_loadu_epi8(has_three, window - 2);
    const __m512i fourth = _mm512_maskz_loadu_epi8(has_four, window - 3);
    const __m512i fifth = _mm512_and_si512(_mm512_maskz_loadu_epi8(has_five, window - 4), low_bits);
    if ((has_six & in_window) != 0 ||
        (_mm512_cmpgt_epu8_mask(fifth, _mm512_set1_epi8(0x0f)) & in_window) != 0) {
      return std::nullopt;
    }
    // Now what begins behind this window.
    uint64_t next_starts = 1;
    uint64_t next_list_starts = 0;
    if (at + kVarintWindow < size) {
      next_list_starts = lists.mark(at + kVarintWindow);
      next_starts = number_starts(at + kVarintWindow, next_list_starts);
    }
    const uint64_t ends = (starts >> 1 | next_starts << 63) & in_window;
    const size_t count = static_cast<size_t>(std::popcount(ends));
    if (static_cast<size_t>(to_end - to) < count) return std::nullopt;
    const auto keep = [&](size_t part, __m512i from) {
      _mm512_store_si512(parts[part],
                         _mm512_maskz_compress_epi8(ends, _mm512_and_si512(from, low_bits)));
    };
    keep(0, last);
    keep(1, second);
    keep(2, third);
    const bool has_long = (has_four & in_window) != 0;
    if (has_long) {
      keep(3, fourth);
      keep(4, fifth);
    }
    for (size_t i = 0; i < count; i += 16) {
      const auto part = [&](size_t p) {
        return _mm512_maskz_cvtepu8_epi32(
            0xffff, _mm_load_si128(reinterpret_cast<const __m128i*>(parts[p] + i)));
      };
      // With masks of ones: gcc 12 warns of the intrinsics without.
      const auto shifted = [&](size_t p) {
        return _mm512_maskz_slli_epi32(0xffff, part(p), static_cast<unsigned>(7 * p));
      };
      __m512i number = _mm512_or_si512(_mm512_or_si512(part(0), shifted(1)), shifted(2));
      if (has_long) number = _mm512_or_si512(number, _mm512_or_si512(shifted(3), shifted(4)));
      const size_t left = count - i;
      const __mmask16 wanted =
          left >= 16 ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1u << left) - 1);
      _mm512_mask_storeu_epi32(to + i, wanted, number);
    }
    to += count;
    starts = next_starts;
    list_starts = next_list_starts;
  }
  if (!is_sound || lists.checked != lists.lengths.size() || lists.next_byte != size) {
    return std::nullopt;
  }
  if (lists.told == nullptr && (to != to_end || lists.next_number != deltas.size())) {
    return std::nullopt;
  }
  return static_cast<size_t>(to - deltas.data());
}

#pragma GCC pop_options

// Differences to neighbours. False: one is `limit` or more.
__attribute__((target("sse4.1"))) bool sum_deltas(uint32_t* list, size_t count, uint64_t limit) {
  uint64_t sum = 0;
  size_t i = 0;
  if (count >= 16) {
    __m128i previous = _mm_setzero_si128();
    __m128i wrapped = _mm_setzero_si128();
    for (; i + 4 <= count; i += 4) {
      __m128i sums = _mm_loadu_si128(reinterpret_cast<const __m128i*>(list + i));
      sums = _mm_add_epi32(sums, _mm_slli_si128(sums, 4));
      sums = _mm_add_epi32(sums, _mm_slli_si128(sums, 8));
      sums = _mm_add_epi32(sums, previous);
      const __m128i before = _mm_alignr_epi8(sums, previous, 12);
      wrapped = _mm_or_si128(wrapped, _mm_xor_si128(_mm_max_epu32(sums, before), sums));
      previous = _mm_shuffle_epi32(sums, 0xff);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(list + i), sums);
    }
    if (_mm_testz_si128(wrapped, wrapped) == 0) return false;
    sum = list[i - 1];
  }
  for (; i < count; ++i) {
    sum += list[i];
    list[i] = static_cast<uint32_t>(sum);
  }
  return sum < limit;
}

bool can_decode_varint_deltas() {
  static const bool can = __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("bmi2");
  return can;
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
    if (bytes.size() >= 72 && can_decode_varint_windows() &&
        !decode_varint_windows(cursor, slack_bytes)) {
      return Errno{EIO};
    }
#endif
    if (!decode_varint_rest(cursor)) return Errno{EIO};
    return {};
  }

#if defined(__x86_64__)
  Result<void> decode_lists(std::span<const uint8_t> bytes, std::span<const uint32_t> lengths,
                            std::span<const uint32_t> degrees, std::span<uint32_t> neighbours,
                            uint64_t limit) const override {
    // If a list is empty, two begin at one byte: those come one by one.
    const auto is_empty = [](uint32_t number) { return number == 0; };
    if (!can_decode_varint_deltas() || lengths.size() != degrees.size() ||
        std::any_of(lengths.begin(), lengths.end(), is_empty) ||
        std::any_of(degrees.begin(), degrees.end(), is_empty)) {
      return ListCodec::decode_lists(bytes, lengths, degrees, neighbours, limit);
    }
    if (!decode_varint_deltas(bytes, {.lengths = lengths, .degrees = degrees}, neighbours)) {
      return Errno{EIO};
    }
    uint32_t* list = neighbours.data();
    for (const uint32_t degree : degrees) {
      if (!sum_deltas(list, degree, limit)) return Errno{EIO};
      list += degree;
    }
    return {};
  }

  Result<size_t> decode_counted(std::span<const uint8_t> bytes, std::span<const uint32_t> lengths,
                                std::span<uint32_t> starts, std::span<uint32_t> neighbours,
                                uint64_t limit) const override {
    if (!can_decode_varint_deltas() ||
        std::find(lengths.begin(), lengths.end(), 0u) != lengths.end()) {
      return ListCodec::decode_counted(bytes, lengths, starts, neighbours, limit);
    }
    const auto total =
        decode_varint_deltas(bytes, {.lengths = lengths, .told = starts.data()}, neighbours);
    if (!total) return Errno{EIO};
    starts[lengths.size()] = static_cast<uint32_t>(*total);
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (!sum_deltas(neighbours.data() + starts[i], starts[i + 1] - starts[i], limit)) {
        return Errno{EIO};
      }
    }
    return *total;
  }
#endif
};

}  // namespace

const ListCodec& varint_codec() {
  static const VarintCodec codec;
  return codec;
}

}  // namespace graphlane::graphfmt
