#include "graphfmt/sort/arc_run.h"

namespace graphlane::graphfmt {
namespace {

// Sizes in bytes, by two bits of the lengths.
constexpr unsigned kFirstBytes[4] = {0, 1, 2, 4};
constexpr unsigned kSecondBytes[4] = {1, 2, 3, 4};
constexpr uint32_t kLowBytes[5] = {0, 0xff, 0xffff, 0xffffff, 0xffffffff};

unsigned first_code(uint32_t difference) {
  return difference == 0 ? 0 : difference <= 0xff ? 1 : difference <= 0xffff ? 2 : 3;
}
unsigned second_code(uint32_t difference) {
  return difference <= 0xff ? 0 : difference <= 0xffff ? 1 : difference <= 0xffffff ? 2 : 3;
}

// Four bytes are written, the number's own count.
void put_number(uint8_t*& to, uint32_t number, unsigned length) {
  std::memcpy(to, &number, sizeof number);
  to += length;
}

uint32_t get_number(const uint8_t*& from, unsigned length) {
  uint32_t number;
  std::memcpy(&number, from, sizeof number);
  from += length;
  return number & kLowBytes[length];
}

template <class A>
uint8_t* encode_keys(const A* arcs, size_t count, uint8_t* to) {
  uint8_t* const lengths = to;
  std::memset(lengths, 0, (count + 1) / 2);
  to += (count + 1) / 2;
  uint64_t previous = arcs[0].key;
  for (size_t i = 1; i < count; ++i) {
    const uint64_t key = arcs[i].key;
    const uint32_t first = first_of(key) - first_of(previous);
    const uint32_t second = first == 0 ? second_of(key) - second_of(previous) : second_of(key);
    const unsigned code = first_code(first) | second_code(second) << 2;
    lengths[i / 2] = static_cast<uint8_t>(lengths[i / 2] | code << 4 * (i % 2));
    put_number(to, first, kFirstBytes[code & 3]);
    put_number(to, second, kSecondBytes[code >> 2]);
    previous = key;
  }
  return to;
}

template <class A>
const uint8_t* decode_keys(const ArcBlock& block, const uint8_t* from, A* arcs) {
  const uint8_t* const lengths = from;
  from += (block.arc_count + 1) / 2;
  uint32_t first = first_of(block.first_key);
  uint32_t second = second_of(block.first_key);
  arcs[0].key = block.first_key;
  for (uint32_t i = 1; i < block.arc_count; ++i) {
    const unsigned code = lengths[i / 2] >> 4 * (i % 2) & 15;
    const uint32_t step = get_number(from, kFirstBytes[code & 3]);
    const uint32_t number = get_number(from, kSecondBytes[code >> 2]);
    first += step;
    second = step == 0 ? second + number : number;
    arcs[i].key = arc_key(first, second);
  }
  return from;
}

template <class A, class EncodeWeights>
size_t encode_blocks(const A* arcs, size_t count, uint8_t* bytes, ArcRunTable& table,
                     const EncodeWeights& encode_weights) {
  table.clear();
  uint8_t* to = bytes;
  for (size_t at = 0; at < count; at += kArcBlock) {
    const size_t length = std::min(kArcBlock, count - at);
    table.push_back({.first_key = arcs[at].key,
                     .offset = static_cast<uint64_t>(to - bytes),
                     .arc_count = static_cast<uint32_t>(length)});
    to = encode_keys(arcs + at, length, to);
    to = encode_weights(arcs + at, length, to);
  }
  table.push_back(
      {.first_key = ~uint64_t{0}, .offset = static_cast<uint64_t>(to - bytes), .arc_count = 0});
  return static_cast<size_t>(to - bytes);
}

}  // namespace

size_t encode_run(const Arc* arcs, size_t count, uint8_t* bytes, ArcRunTable& table) {
  return encode_blocks(arcs, count, bytes, table,
                       [](const Arc*, size_t, uint8_t* to) { return to; });
}

size_t encode_run(const WeightedArc* arcs, size_t count, size_t weight_bytes, uint8_t* bytes,
                  ArcRunTable& table) {
  return encode_blocks(arcs, count, bytes, table,
                       [&](const WeightedArc* block, size_t length, uint8_t* to) {
                         for (size_t i = 0; i < length; ++i, to += weight_bytes) {
                           std::memcpy(to, &block[i].weight, weight_bytes);
                         }
                         return to;
                       });
}

bool decode_block(const ArcBlock& block, const uint8_t* bytes, const uint8_t* end, Arc* arcs) {
  return decode_keys(block, bytes, arcs) == end;
}

bool decode_block(const ArcBlock& block, size_t weight_bytes, const uint8_t* bytes,
                  const uint8_t* end, WeightedArc* arcs) {
  const uint8_t* from = decode_keys(block, bytes, arcs);
  if (from + weight_bytes * block.arc_count != end) return false;
  for (uint32_t i = 0; i < block.arc_count; ++i, from += weight_bytes) {
    arcs[i].weight = 0;
    std::memcpy(&arcs[i].weight, from, weight_bytes);
  }
  return true;
}

}  // namespace graphlane::graphfmt
