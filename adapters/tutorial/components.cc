// components GRID: weakly connected components. Other jobs on the grid share its edges.
#include <graphlane_share.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

static int components(const char* grid) {
  auto job = graphlane::ShareJob::grid(grid);
  const size_t edge_words = job.info().weighted ? 3 : 2;
  std::vector<uint32_t> label(job.info().vertex_count);
  std::iota(label.begin(), label.end(), 0u);

  for (bool changed = true; changed;) {
    changed = false;
    job.sweep([&](const graphlane_share_chunk& chunk) {
      const auto* edge = static_cast<const uint32_t*>(chunk.data);
      for (uint64_t i = 0; i < chunk.edge_count; ++i, edge += edge_words) {
        uint32_t& source = label[edge[0]];
        uint32_t& target = label[edge[1]];
        if (source == target) continue;
        source = target = std::min(source, target);
        changed = true;
      }
    });
  }

  uint32_t count = 0;  // of components: vertices that are the lowest of theirs
  for (uint32_t v = 0; v < label.size(); ++v) count += label[v] == v;
  std::printf("%u components\n", count);
  return 0;
}

int main(int argc, char** argv) try {
  if (argc == 2) return components(argv[1]);
  std::fputs("usage: components GRID\n", stderr);
  return 2;
} catch (const graphlane::ShareError& error) {
  std::fprintf(stderr, "components: %s\n", error.what());
  return 1;
}
