// How many lists a second one thread gets, where every vertex asks for its own list. Three variants:
// from cached pages, from cached pages with a task for each list (no merging), and from memory.
//
//   make dense_lists
//   build/release/experiments/dense_lists GRAPH [ROUNDS [VARIANT]]     GRAPH is what `graphlane convert --to lists` made;
//                                                                  VARIANT (0, 1, 2): only this one, for perf
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "adapters/semiext/engine.h"

namespace graphlane::semiext {
namespace {

// Looks at each list once: its length, and its last neighbour.
class Look {
 public:
  Next begin_iteration(Engine<Look>& engine) {
    return engine.iteration() == 0 ? Next::kAll : Next::kStop;
  }
  void run(Engine<Look>::Context& ctx, VertexId v) { ctx.request_vertex(v, v, EdgeSide::kOut); }
  void run_on_vertex(Engine<Look>::Context&, VertexId, const ListView& list) {
    ++lists;
    if (!list.neighbours.empty()) sum += list.neighbours.size() + list.neighbours.back();
  }
  uint64_t lists = 0;
  uint64_t sum = 0;
};

// The time of this thread alone: other work on the machine does not count.
double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Variant {
  const char* name;
  GraphOptions options;
  std::unique_ptr<Graph> graph = nullptr;
  std::vector<double> seconds = {};
  uint64_t lists = 0;
  uint64_t sum = 0;
};

bool sweep(Variant& variant, WorkerPool& pool) {
  Look look;
  Engine<Look> engine(*variant.graph, pool, look);
  const double begin = cpu_seconds();
  if (const Outcome<void> done = engine.run(); !done) {
    return std::fprintf(stderr, "%s\n", done.error().text.c_str()), false;
  }
  variant.seconds.push_back(cpu_seconds() - begin);
  variant.lists = look.lists;
  variant.sum = look.sum;
  return true;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int compare(const std::string& path, int rounds, int only) {
  constexpr uint64_t kCache = uint64_t{2} << 30;  // only what is used of it takes memory
  Variant all[] = {{"in memory", {.in_memory = true}},
                   {"cached, merged in the engine", {.cache_bytes = kCache}},
                   {"cached, a task for each list",
                    {.cache_bytes = kCache, .variant = {.merge = Merge::kPages}}}};
  std::span<Variant> variants(all);
  if (only >= 0) variants = variants.subspan(static_cast<size_t>(only), 1);
  WorkerPool pool(1);
  for (Variant& variant : variants) {
    auto graph = Graph::open(path, variant.options);
    if (!graph) return std::fprintf(stderr, "%s\n", graph.error().text.c_str()), 1;
    variant.graph = std::move(*graph);
    if (!sweep(variant, pool)) return 1;  // fills the cache
    variant.seconds.clear();
  }
  for (int round = 0; round < rounds; ++round) {
    for (Variant& variant : variants) {
      if (!sweep(variant, pool)) return 1;
    }
  }
  for (const Variant& variant : variants) {
    if (variant.sum != variants[0].sum)
      return std::fprintf(stderr, "%s: other lists\n", variant.name), 1;
    std::printf("%-30s %6.1f M lists/s   %6.2f of in memory\n", variant.name,
                static_cast<double>(variant.lists) / median(variant.seconds) * 1e-6,
                median(variants[0].seconds) / median(variant.seconds));
  }
  return 0;
}

}  // namespace
}  // namespace graphlane::semiext

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("usage: dense_lists GRAPH [ROUNDS [VARIANT]]\n", stderr), 2;
  return graphlane::semiext::compare(argv[1], argc > 2 ? std::atoi(argv[2]) : 5,
                                     argc > 3 ? std::clamp(std::atoi(argv[3]), 0, 2) : -1);
}
