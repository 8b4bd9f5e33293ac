#include "graphfmt/codec/codec_simd.h"

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace graphlane::graphfmt {
namespace {

constexpr size_t control_bytes(size_t count) { return (count + 3) / 4; }
constexpr unsigned length_in(uint8_t control, unsigned index) {
  return (control >> 2 * index & 3) + 1;
}

// How many bytes the four numbers of a control byte take.
constexpr std::array<uint8_t, 256> kQuadBytes = [] {
  std::array<uint8_t, 256> lengths{};
  for (unsigned c = 0; c < 256; ++c) {
    for (unsigned i = 0; i < 4; ++i) {
      lengths[c] = static_cast<uint8_t>(lengths[c] + length_in(static_cast<uint8_t>(c), i));
    }
  }
  return lengths;
}();

// The rest of a list that is being decoded.
struct SimdCursor {
  const uint8_t* control;
  const uint8_t* at;
  const uint8_t* end;
  uint32_t* list;
  uint32_t* list_end;
  uint64_t previous = 0;
  uint64_t limit;
};

// The rest, number by number, from a whole control byte on. False: damaged.
bool decode_simd_rest(SimdCursor& c) {
  for (unsigned index = 0; c.list != c.list_end; ++c.list) {
    const unsigned length = length_in(*c.control, index);
    if (static_cast<size_t>(c.end - c.at) < length) return false;
    uint32_t delta = 0;
    for (unsigned i = 0; i < length; ++i) delta |= uint32_t{*c.at++} << 8 * i;
    c.previous += delta;
    if (c.previous >= c.limit) return false;
    *c.list = static_cast<uint32_t>(c.previous);
    if (++index == 4) {
      index = 0;
      ++c.control;
    } else if (c.list + 1 == c.list_end && *c.control >> 2 * index != 0) {
      return false;
    }
  }
  return c.at == c.end;
}

#if defined(__x86_64__)

// Which bytes of the next 16 go where; 0xff makes a zero.
struct QuadShuffles {
  alignas(16) uint8_t of[256][16];
};
constexpr QuadShuffles kQuadShuffles = [] {
  QuadShuffles shuffles{};
  for (unsigned c = 0; c < 256; ++c) {
    uint8_t from = 0;
    for (unsigned i = 0; i < 4; ++i) {
      for (unsigned b = 0; b < 4; ++b) {
        shuffles.of[c][4 * i + b] =
            b < length_in(static_cast<uint8_t>(c), i) ? from++ : uint8_t{0xff};
      }
    }
  }
  return shuffles;
}();

// Decodes numbers by fours while 16 bytes can be loaded. False: damaged.
__attribute__((target("sse4.1"))) bool decode_simd_quads(SimdCursor& c, size_t slack_bytes) {
  const ptrdiff_t behind = slack_bytes >= 16 ? 0 : 15;
  __m128i previous = _mm_set1_epi32(static_cast<int>(c.previous));
  __m128i wrapped = _mm_setzero_si128();
  while (c.list_end - c.list >= 4 && c.end - c.at > behind) {
    const uint8_t control = *c.control++;
    __m128i sums = _mm_shuffle_epi8(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(c.at)),
        _mm_load_si128(reinterpret_cast<const __m128i*>(kQuadShuffles.of[control])));
    c.at += kQuadBytes[control];
    // A sum that wraps is smaller than the one before it.
    __m128i pairs = _mm_add_epi32(sums, _mm_slli_si128(sums, 4));
    sums = _mm_add_epi32(pairs, _mm_slli_si128(pairs, 8));
    sums = _mm_add_epi32(sums, previous);
    const __m128i before = _mm_alignr_epi8(sums, previous, 12);
    wrapped = _mm_or_si128(wrapped, _mm_xor_si128(_mm_max_epu32(sums, before), sums));
    previous = _mm_shuffle_epi32(sums, 0xff);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(c.list), sums);
    c.list += 4;
  }
  c.previous = static_cast<uint32_t>(_mm_cvtsi128_si32(previous));
  return _mm_testz_si128(wrapped, wrapped) != 0 && c.at <= c.end;
}

// Four differences, the control byte and the data behind the pointers, which move on.
__attribute__((target("sse4.1"), always_inline)) inline __m128i next_four(const uint8_t*& control,
                                                                          const uint8_t*& at) {
  const uint8_t lengths = *control++;
  const __m128i four =
      _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(kQuadShuffles.of[lengths])));
  at += kQuadBytes[lengths];
  return four;
}

__attribute__((target("sse4.1"), always_inline)) inline __m128i sums_of_four(__m128i four,
                                                                             __m128i previous) {
  four = _mm_add_epi32(four, _mm_slli_si128(four, 4));
  four = _mm_add_epi32(four, _mm_slli_si128(four, 8));
  return _mm_add_epi32(four, previous);
}

// Decodes consecutive lists while 16 bytes may be read behind a list, and 3 numbers written.
// Returns their number. It stops before a list that decode() must check: one that may be damaged,
// or has a number from 2^31 on. If no difference and no sum has the top bit, no sum has wrapped.
__attribute__((target("sse4.1"))) size_t decode_simd_lists(std::span<const uint8_t>& bytes,
                                                           std::span<const uint32_t> lengths,
                                                           std::span<const uint32_t> degrees,
                                                           std::span<uint32_t>& neighbours,
                                                           uint64_t limit) {
  // From the fourth on: as many ones as there are numbers.
  alignas(16) static constexpr uint32_t kOnes[8] = {~0u, ~0u, ~0u, ~0u, 0, 0, 0, 0};
  const uint8_t* from = bytes.data();
  const uint8_t* const bytes_end = from + bytes.size();
  uint32_t* to = neighbours.data();
  uint32_t* const to_end = to + neighbours.size();
  size_t done = 0;
  for (; done < lengths.size(); ++done) {
    const size_t count = degrees[done];
    const size_t controls = control_bytes(count);
    if (static_cast<size_t>(bytes_end - from) < size_t{lengths[done]} + 16 ||
        lengths[done] < controls || static_cast<size_t>(to_end - to) < count + 3 || count == 0) {
      break;
    }
    const uint8_t* control = from;
    const uint8_t* at = from + controls;
    const uint8_t* const end = from + lengths[done];
    const uint8_t* const last_control = from + count / 4;
    uint32_t* list = to;
    __m128i sums = _mm_setzero_si128();
    __m128i seen = _mm_setzero_si128();
    while (control != last_control && at <= end) {
      const __m128i four = next_four(control, at);
      sums = sums_of_four(four, _mm_shuffle_epi32(sums, 0xff));
      seen = _mm_or_si128(seen, _mm_or_si128(four, sums));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(list), sums);
      list += 4;
    }
    if (at > end) break;
    if (const unsigned rest = count % 4; rest != 0) {
      // The lengths of what is missing are 0, which means a byte each.
      if (*control >> 2 * rest != 0) break;
      const __m128i ones = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kOnes + 4 - rest));
      const __m128i four = _mm_and_si128(next_four(control, at), ones);
      at -= 4 - rest;
      sums = sums_of_four(four, _mm_shuffle_epi32(sums, 0xff));
      seen = _mm_or_si128(seen, _mm_or_si128(four, sums));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(list), sums);
    }
    if (at != end || to[count - 1] >= limit || _mm_movemask_ps(_mm_castsi128_ps(seen)) != 0) break;
    from = end;
    to += count;
  }
  bytes = bytes.subspan(static_cast<size_t>(from - bytes.data()));
  neighbours = neighbours.subspan(static_cast<size_t>(to - neighbours.data()));
  return done;
}

bool can_decode_simd_quads() {
  static const bool can = __builtin_cpu_supports("sse4.1");
  return can;
}

#endif

// How many numbers of a last four with this control byte have so many bytes; 0: none has.
constexpr auto kCountsOfRest = [] {
  std::array<std::array<uint8_t, 17>, 256> counts{};
  for (unsigned control = 0; control < 256; ++control) {
    size_t bytes = 0;
    for (uint8_t i = 0; i < 4; ++i) {
      bytes += length_in(static_cast<uint8_t>(control), i);
      counts[control][bytes] = static_cast<uint8_t>(i + 1);
    }
  }
  return counts;
}();

class SimdCodec final : public ListCodec {
 public:
  CodecKind kind() const override { return CodecKind::kSimd; }
  size_t bytes_max(size_t count) const override {
    return control_bytes(count) + count * sizeof(uint32_t);
  }

  size_t encode(std::span<const uint32_t> list, uint8_t* bytes) const override {
    uint8_t* to = bytes + control_bytes(list.size());
    uint32_t previous = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      const uint32_t delta = list[i] - previous;
      previous = list[i];
      const unsigned code = (static_cast<unsigned>(std::bit_width(delta | 1)) + 7) / 8 - 1;
      if (i % 4 == 0) bytes[i / 4] = 0;
      bytes[i / 4] = static_cast<uint8_t>(bytes[i / 4] | code << 2 * (i % 4));
      for (unsigned b = 0; b <= code; ++b) *to++ = static_cast<uint8_t>(delta >> 8 * b);
    }
    return static_cast<size_t>(to - bytes);
  }

  // With each neighbour more, the control bytes and the data together become longer: so only one
  // count fits.
  Result<size_t> count(std::span<const uint8_t> bytes) const override {
    size_t used = 0;  // control bytes and data of the fours before
    for (size_t quad = 0; used < bytes.size(); ++quad) {
      const uint8_t control = bytes[quad];
      const size_t rest = bytes.size() - used - 1;
      if (rest > kQuadBytes[control]) {
        used += 1u + kQuadBytes[control];
        continue;
      }
      const unsigned last = kCountsOfRest[control][rest];
      if (last == 0) return Errno{EIO};
      return 4 * quad + last;
    }
    return size_t{0};
  }

  Result<void> decode(std::span<const uint8_t> bytes, std::span<uint32_t> list, uint64_t limit,
                      [[maybe_unused]] size_t slack_bytes) const override {
    const size_t controls = control_bytes(list.size());
    if (bytes.size() < controls) return Errno{EIO};
    SimdCursor cursor{.control = bytes.data(),
                      .at = bytes.data() + controls,
                      .end = bytes.data() + bytes.size(),
                      .list = list.data(),
                      .list_end = list.data() + list.size(),
                      .limit = limit};
#if defined(__x86_64__)
    if (can_decode_simd_quads() && !decode_simd_quads(cursor, slack_bytes)) return Errno{EIO};
    if (!list.empty() && cursor.list != list.data() && cursor.previous >= limit) return Errno{EIO};
#endif
    if (!decode_simd_rest(cursor)) return Errno{EIO};
    return {};
  }

  // First all counts, then all lists together.
  Result<size_t> decode_counted(std::span<const uint8_t> bytes, std::span<const uint32_t> lengths,
                                std::span<uint32_t> starts, std::span<uint32_t> neighbours,
                                uint64_t limit) const override {
    thread_local std::vector<uint32_t> degrees;
    degrees.resize(lengths.size());
    size_t total = 0, at = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] == 0 || lengths[i] > bytes.size() - at) return Errno{EIO};
      const Result<size_t> found = SimdCodec::count(bytes.subspan(at, lengths[i]));
      if (!found) return Errno{EIO};
      starts[i] = static_cast<uint32_t>(total);
      degrees[i] = static_cast<uint32_t>(*found);
      total += *found;
      at += lengths[i];
    }
    if (at != bytes.size() || total > neighbours.size()) return Errno{EIO};
    starts[lengths.size()] = static_cast<uint32_t>(total);
    if (auto done = decode_lists(bytes, lengths, degrees, neighbours.first(total), limit); !done) {
      return done.error();
    }
    return total;
  }

  Result<void> decode_lists(std::span<const uint8_t> bytes, std::span<const uint32_t> lengths,
                            std::span<const uint32_t> degrees, std::span<uint32_t> neighbours,
                            uint64_t limit) const override {
    if (lengths.size() != degrees.size()) return Errno{EIO};
#if defined(__x86_64__)
    while (can_decode_simd_quads() && !lengths.empty()) {
      const size_t done = decode_simd_lists(bytes, lengths, degrees, neighbours, limit);
      lengths = lengths.subspan(done);
      degrees = degrees.subspan(done);
      if (lengths.empty()) break;
      // The list that stopped it, alone.
      if (lengths[0] > bytes.size() || degrees[0] > neighbours.size()) return Errno{EIO};
      if (auto one = decode(bytes.first(lengths[0]), neighbours.first(degrees[0]), limit,
                            bytes.size() - lengths[0]);
          !one) {
        return one;
      }
      bytes = bytes.subspan(lengths[0]);
      neighbours = neighbours.subspan(degrees[0]);
      lengths = lengths.subspan(1);
      degrees = degrees.subspan(1);
    }
#endif
    return ListCodec::decode_lists(bytes, lengths, degrees, neighbours, limit);
  }
};

}  // namespace

const ListCodec& simd_codec() {
  static const SimdCodec codec;
  return codec;
}

}  // namespace graphlane::graphfmt
