#include "iomgr/cache/word_packing.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace graphlane {
namespace {

using Vector = uint32_t __attribute__((vector_size(16)));

constexpr uint32_t kBits = 32;
constexpr uint32_t kColumnVectors = 32;  // a column takes as many vectors as a word has bits
static_assert(2 * kColumnVectors * sizeof(Vector) == kPackedGroupBytes);

struct Group {
  Vector columns[2][kColumnVectors];
};

Vector load(const std::byte* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

void store(std::byte* to, Vector vector) { std::memcpy(to, &vector, sizeof vector); }

Vector all(uint32_t word) { return Vector{word, word, word, word}; }

void load_columns(const std::byte* from, Group* group) {
  for (uint32_t i = 0; i < kColumnVectors; ++i, from += 2 * sizeof(Vector)) {
    const Vector a = load(from), b = load(from + sizeof(Vector));
    group->columns[0][i] = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    group->columns[1][i] = __builtin_shufflevector(a, b, 1, 3, 5, 7);
  }
}

// The least word, and the bits of the largest distance from it.
void measure(const Vector (&column)[kColumnVectors], uint32_t* reference, uint8_t* width) {
  Vector least = column[0], most = column[0];
  for (const Vector& vector : column) {
    least = vector < least ? vector : least;
    most = vector > most ? vector : most;
  }
  uint32_t low = least[0], high = most[0];
  for (int i = 1; i < 4; ++i) {
    low = std::min(low, least[i]);
    high = std::max(high, most[i]);
  }
  *reference = low;
  *width = static_cast<uint8_t>(std::bit_width(high - low));
}

std::byte* pack_column(const Vector (&column)[kColumnVectors], uint32_t reference, uint32_t width,
                       std::byte* to) {
  const Vector least = all(reference);
  Vector open{};
  uint32_t used = 0;
  for (const Vector& vector : column) {
    const Vector distance = vector - least;
    open |= distance << used;
    used += width;
    if (used < kBits) continue;
    store(to, open);
    to += sizeof open;
    used -= kBits;
    open = used == 0 ? Vector{} : distance >> (width - used);
  }
  return to;
}

const std::byte* unpack_column(const std::byte* from, uint32_t reference, uint32_t width,
                               Vector (&column)[kColumnVectors]) {
  const Vector least = all(reference);
  if (width == 0) {
    std::fill_n(column, kColumnVectors, least);
    return from;
  }
  const Vector mask = all(UINT32_MAX >> (kBits - width));
  Vector open{};
  uint32_t used = kBits;  // of `open`
  for (Vector& vector : column) {
    Vector distance = used == kBits ? Vector{} : open >> used;
    used += width;
    if (used > kBits) {
      open = load(from);
      from += sizeof open;
      used -= kBits;
      distance |= open << (width - used);
    }
    vector = (distance & mask) + least;
  }
  return from;
}

uint64_t bytes_of(const PackedGroup& group) {
  return (uint64_t{group.width[0]} + group.width[1]) * sizeof(Vector);
}

uint64_t begin_of(const PackedGroup& group) { return uint64_t{group.begin} * sizeof(Vector); }

void measure(const Group& columns, PackedGroup* group) {
  for (int i = 0; i < 2; ++i) measure(columns.columns[i], &group->reference[i], &group->width[i]);
}

void unpack_group(const std::byte* packed, const PackedGroup& group, std::byte* to) {
  Group columns;
  const std::byte* from = packed + begin_of(group);
  for (int i = 0; i < 2; ++i) {
    from = unpack_column(from, group.reference[i], group.width[i], columns.columns[i]);
  }
  for (uint32_t i = 0; i < kColumnVectors; ++i, to += 2 * sizeof(Vector)) {
    const Vector a = columns.columns[0][i], b = columns.columns[1][i];
    store(to, __builtin_shufflevector(a, b, 0, 4, 1, 5));
    store(to + sizeof(Vector), __builtin_shufflevector(a, b, 2, 6, 3, 7));
  }
}

}  // namespace

uint64_t pack_words(std::span<const std::byte> bytes, std::byte* to, PackedGroup* groups) {
  uint64_t packed = 0;
  for (uint64_t at = 0; at < bytes.size(); at += kPackedGroupBytes, ++groups) {
    Group columns;  // a copy, because packing may overwrite the source
    load_columns(bytes.data() + at, &columns);
    measure(columns, groups);
    groups->begin = static_cast<uint16_t>(packed / sizeof(Vector));
    std::byte* end = to + packed;
    for (int i = 0; i < 2; ++i) {
      end = pack_column(columns.columns[i], groups->reference[i], groups->width[i], end);
    }
    packed = static_cast<uint64_t>(end - to);
  }
  return packed;
}

uint64_t packed_bytes(std::span<const std::byte> bytes) {
  uint64_t packed = 0;
  for (uint64_t at = 0; at < bytes.size(); at += kPackedGroupBytes) {
    Group columns;
    PackedGroup group;
    load_columns(bytes.data() + at, &columns);
    measure(columns, &group);
    packed += bytes_of(group);
  }
  return packed;
}

PackedRange packed_range(const PackedGroup* groups, uint64_t begin, uint64_t length_bytes) {
  if (length_bytes == 0) return {0, 0};
  const PackedGroup& last = groups[(begin + length_bytes - 1) / kPackedGroupBytes];
  return {begin_of(groups[begin / kPackedGroupBytes]), begin_of(last) + bytes_of(last)};
}

void unpack_words(const std::byte* packed, const PackedGroup* groups, uint64_t begin,
                  std::span<std::byte> to) {
  while (!to.empty()) {
    const PackedGroup& group = groups[begin / kPackedGroupBytes];
    const uint64_t skipped = begin % kPackedGroupBytes;
    const uint64_t wanted = std::min(kPackedGroupBytes - skipped, to.size());
    if (wanted == kPackedGroupBytes) {
      unpack_group(packed, group, to.data());
    } else {
      std::byte whole[kPackedGroupBytes];
      unpack_group(packed, group, whole);
      std::memcpy(to.data(), whole + skipped, wanted);
    }
    begin += wanted;
    to = to.subspan(wanted);
  }
}

}  // namespace graphlane
