// How many neighbours a second each codec decodes, on one core, from memory: all lists of a graph
// cut into P x P blocks, by pieces of blocks; ends of lists and prefix sums included.
//
//   g++ -std=c++20 -O2 -I. experiments/costs/decode_speed.cc graphfmt/codec/codec*.cc -lfmt -o build/decode_speed
//   build/decode_speed EDGES.u32 [P]     pairs of uint32, sorted by source and target
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "graphfmt/codec/codec.h"

namespace {

using graphlane::graphfmt::CodecKind;
using graphlane::graphfmt::ListCodec;

constexpr int kRounds = 9;
// The numbers that are decoded at a time stay in the second-level cache, as they do in an engine.
constexpr size_t kNumbersMax = size_t{128} << 10;

struct Block {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> lengths;
  std::vector<uint32_t> degrees;
  size_t count = 0;
};

std::vector<Block> encode_blocks(const std::vector<uint32_t>& pairs, uint32_t vertex_count,
                                 uint32_t partitions, const ListCodec& codec) {
  std::vector<Block> blocks;
  std::vector<Block> open(size_t{partitions} * partitions);
  const uint32_t width = (vertex_count + partitions - 1) / partitions;
  std::vector<uint32_t> list;
  for (size_t at = 0; at < pairs.size();) {
    const uint32_t source = pairs[at];
    const uint32_t column = pairs[at + 1] / width;
    list.clear();
    for (; at < pairs.size() && pairs[at] == source && pairs[at + 1] / width == column; at += 2) {
      list.push_back(pairs[at + 1]);
    }
    Block* current = &open[size_t{source / width} * partitions + column];
    if (current->count + list.size() > kNumbersMax && current->count > 0) {
      blocks.push_back(std::exchange(*current, Block()));
    }
    Block& block = *current;
    const size_t begin = block.bytes.size();
    block.bytes.resize(begin + codec.bytes_max(list.size()));
    const size_t length = codec.encode(list, block.bytes.data() + begin);
    block.bytes.resize(begin + length);
    block.lengths.push_back(static_cast<uint32_t>(length));
    block.degrees.push_back(static_cast<uint32_t>(list.size()));
    block.count += list.size();
  }
  std::move(open.begin(), open.end(), std::back_inserter(blocks));
  return blocks;
}

// The time of this thread alone: other work on the machine does not count.
double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

bool decode(const Block& block, const ListCodec& codec, std::vector<uint32_t>& out) {
  return codec
      .decode_lists(block.bytes, block.lengths, block.degrees, {out.data(), block.count},
                    uint64_t{1} << 32)
      .has_value();
}

// As in `dual`: its index has lengths alone, and the lists tell how many numbers they have.
bool count_and_decode(const Block& block, const ListCodec& codec, std::vector<uint32_t>& starts,
                      std::vector<uint32_t>& out) {
  starts.resize(block.lengths.size() + 1);
  out.resize(std::max(out.size(), block.bytes.size()));
  const auto total =
      codec.decode_counted(block.bytes, block.lengths, starts, out, uint64_t{1} << 32);
  return total && *total == block.count;
}

// The least seconds of some rounds over all blocks; below 0: one does not come back.
template <class Decode>
double seconds_of(const std::vector<Block>& blocks, const Decode& decode_one) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const double start = cpu_seconds();
    for (const Block& block : blocks) {
      if (!decode_one(block)) return -1;
    }
    best = std::min(best, cpu_seconds() - start);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: decode_speed EDGES.u32 [P]\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
  std::vector<uint32_t> pairs(content.size() / 4);
  std::copy_n(content.data(), pairs.size() * 4, reinterpret_cast<char*>(pairs.data()));
  uint32_t vertex_count = 0;
  for (const uint32_t vertex : pairs) vertex_count = std::max(vertex_count, vertex + 1);
  const uint32_t partitions = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 1;
  for (const CodecKind kind : {CodecKind::kRaw, CodecKind::kVarint, CodecKind::kSimd}) {
    const ListCodec& codec = ListCodec::of(kind);
    const std::vector<Block> blocks = encode_blocks(pairs, vertex_count, partitions, codec);
    size_t count = 0, bytes = 0, largest = 0;
    for (const Block& block : blocks) {
      count += block.count;
      bytes += block.bytes.size();
      largest = std::max(largest, block.count);
    }
    std::vector<uint32_t> out(largest);
    std::vector<uint32_t> starts;
    const double known =
        seconds_of(blocks, [&](const Block& block) { return decode(block, codec, out); });
    const double counted = seconds_of(
        blocks, [&](const Block& block) { return count_and_decode(block, codec, starts, out); });
    if (known < 0 || counted < 0) {
      std::fprintf(stderr, "decode_speed: a block does not come back\n");
      return 1;
    }
    std::printf("%-7s P %u  %9zu numbers  %5.2f bits  %6.3f G/s, counted %6.3f G/s\n",
                std::string(name_of(kind)).c_str(), partitions, count,
                8.0 * static_cast<double>(bytes) / static_cast<double>(count),
                static_cast<double>(count) / known * 1e-9,
                static_cast<double>(count) / counted * 1e-9);
  }
}
