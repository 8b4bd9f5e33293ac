// shard_engine: makes shards, and sweeps them with parallel sliding windows. It
// stands in for GraphChi's sharder, connected components and PageRank. Only the
// reads and writes are parallel: vertices are updated in order, so that the
// results have the same bits for any number of threads.
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cstdio>

#include "tests/engines/arguments.h"
#include "tests/engines/result.h"
#include "tests/engines/windows.h"

namespace engines {
namespace {

constexpr char kUsage[] =
    "usage: shard_engine shard EDGES.bin BASE --shards S\n"
    "       shard_engine wcc|pagerank BASE --shards S [--iterations N] [--threads N]\n"
    "                    [--out FILE] [--seconds]\n";

// A label goes both ways along an edge; the edge holds the lower of its ends'.
std::vector<int32_t> wcc(SlidingWindows& windows, int64_t iterations_max) {
  windows.sweep([](const Vertex& vertex) {
    vertex.value = static_cast<uint32_t>(vertex.id);
    for (uint32_t* edge : vertex.out) *edge = vertex.value;
  });
  int64_t iterations = 0;
  for (bool changed = true; changed && iterations < iterations_max; ++iterations) {
    changed = false;
    windows.sweep([&](const Vertex& vertex) {
      uint32_t label = vertex.value;
      for (const uint32_t* edge : vertex.in) label = std::min(label, *edge);
      for (const uint32_t* edge : vertex.out) label = std::min(label, *edge);
      changed |= label != vertex.value;
      vertex.value = label;
      for (uint32_t* edge : vertex.in) *edge = label;
      for (uint32_t* edge : vertex.out) *edge = label;
    });
  }
  std::vector<int32_t> labels;
  for (const uint32_t label : windows.vertex_values()) {
    labels.push_back(static_cast<int32_t>(label));
  }
  int64_t component_count = 0;
  for (size_t v = 0; v < labels.size(); ++v) {
    component_count += labels[v] == static_cast<int32_t>(v);
  }
  std::printf("wcc: %lld components in %lld iterations", static_cast<long long>(component_count),
              static_cast<long long>(iterations));
  return labels;
}

// A rank is seen by the vertices after it in the same iteration, as in
// GraphChi: fewer iterations to the same limit as GridGraph's.
std::vector<double> pagerank(SlidingWindows& windows, int64_t iterations) {
  const auto pass_on = [](const Vertex& vertex, float rank) {
    vertex.value = std::bit_cast<uint32_t>(rank);
    const float share = rank / static_cast<float>(vertex.degrees.out);
    for (uint32_t* edge : vertex.out) *edge = std::bit_cast<uint32_t>(share);
  };
  windows.sweep([&](const Vertex& vertex) { pass_on(vertex, 1); });
  for (int64_t i = 0; i < iterations; ++i) {
    windows.sweep([&](const Vertex& vertex) {
      float sum = 0;
      for (const uint32_t* edge : vertex.in) sum += std::bit_cast<float>(*edge);
      pass_on(vertex, 0.15f + 0.85f * sum);
    });
  }
  std::vector<double> ranks;
  for (const uint32_t rank : windows.vertex_values()) ranks.push_back(std::bit_cast<float>(rank));
  double total = 0;
  for (const double rank : ranks) total += rank;
  std::printf("pagerank: %lld iterations, sum of ranks %.9f", static_cast<long long>(iterations),
              total);
  return ranks;
}

// Every block of an interval is open at once: 1 GiB of values are 1024 files.
void raise_open_files() {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

template <class T>
void finish(const Arguments& arguments, const std::vector<T>& result) {
  std::printf(", checksum %016llx\n", static_cast<unsigned long long>(checksum(result)));
  write_result(arguments.text("--out", ""), result);
}

int run(int argc, char** argv) {
  const Arguments arguments(argc, argv, kUsage, {"--shards", "--iterations", "--threads", "--out"},
                            {"--seconds"});
  const std::string what = arguments.word(0);
  const int64_t shard_count = arguments.number("--shards", 4);
  const int64_t thread_count = arguments.number("--threads", 4);
  if (shard_count < 1 || shard_count > 4096) die("--shards: 1 to 4096");
  if (thread_count < 1 || thread_count > 1024) die("--threads: 1 to 1024");
  if (what == "shard") {
    make_shards(arguments.word(1), arguments.word(2), static_cast<int>(shard_count));
    return 0;
  }
  raise_open_files();
  SlidingWindows windows(arguments.word(1), static_cast<int>(shard_count),
                         static_cast<int>(thread_count));
  const Stopwatch watch;
  if (what == "wcc") {
    finish(arguments, wcc(windows, arguments.number("--iterations", 1000)));
  } else if (what == "pagerank") {
    finish(arguments, pagerank(windows, arguments.number("--iterations", 10)));
  } else {
    arguments.wrong();
  }
  if (arguments.has("--seconds")) std::printf("%.3f seconds\n", watch.seconds());
  return 0;
}

}  // namespace
}  // namespace engines

int main(int argc, char** argv) { return engines::run(argc, argv); }
