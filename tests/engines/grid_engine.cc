// grid_engine: PageRank, weakly connected components and breadth-first search
// over a GridGraph grid. It stands in for GridGraph's own programs, and gives
// the same bits for any number of threads:
//
//   wcc, bfs   labels and parents are minima, found with an atomic min
//   pagerank   ranks are added up in fixed point, where the order of the
//              additions does not matter
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <thread>

#include "tests/engines/arguments.h"
#include "tests/engines/bitmap.h"
#include "tests/engines/grid.h"
#include "tests/engines/result.h"

namespace engines {
namespace {

constexpr char kUsage[] =
    "usage: grid_engine pagerank|wcc|bfs DIR [--iterations N] [--root V] [--memory SIZE]\n"
    "                   [--threads N] [--direct | --buffered] [--out FILE] [--seconds]\n";

constexpr int64_t kPlentyBytes = int64_t{1} << 40;

template <class T>
T load_relaxed(T& value) {
  return std::atomic_ref(value).load(std::memory_order_relaxed);
}

// Relaxed: joining the threads separates the passes. Returns true if it lowered the value.
template <class T>
bool atomic_min(T& value, T candidate) {
  std::atomic_ref<T> ref(value);
  T seen = ref.load(std::memory_order_relaxed);
  while (candidate < seen) {
    if (ref.compare_exchange_weak(seen, candidate, std::memory_order_relaxed)) return true;
  }
  return false;
}

template <class T>
void atomic_add(T& value, T amount) {
  std::atomic_ref<T>(value).fetch_add(amount, std::memory_order_relaxed);
}

// The ranks of V vertices add up to at most V, so a sum in fixed point needs as many integer bits
// as V has. The remaining bits are the fraction.
class FixedPoint {
 public:
  explicit FixedPoint(int64_t vertex_count)
      : scale_(std::ldexp(1.0, 62 - std::bit_width(static_cast<uint64_t>(vertex_count)))) {}
  uint64_t from(double value) const { return static_cast<uint64_t>(std::llrint(value * scale_)); }
  double to_double(uint64_t fixed) const { return static_cast<double>(fixed) / scale_; }

 private:
  const double scale_;
};

std::vector<double> pagerank(Grid& grid, int64_t iterations) {
  const int64_t vertex_count = grid.vertex_count();
  const FixedPoint fixed(vertex_count);
  VertexFile<int32_t> degree(grid.directory() + "/degree", vertex_count);
  VertexFile<uint64_t> share(grid.directory() + "/share", vertex_count);  // rank / degree
  VertexFile<uint64_t> sum(grid.directory() + "/sum", vertex_count);      // of incoming shares
  VertexFile<double> rank(grid.directory() + "/rank", vertex_count);

  degree.fill(0);
  grid.stream_rows({}, [&](const Edge& edge) { atomic_add(degree[edge.source], 1); });

  const auto for_vertices = [&](const std::function<void(int64_t)>& process) {
    grid.stream_vertices(
        vertex_count * static_cast<int64_t>(2 * sizeof(uint64_t)), process,
        [&](VertexRange range) { share.load(range), sum.load(range); },
        [&] { share.save(), sum.save(); });
  };
  const auto pass_on = [&](int64_t v) {
    share[v] = degree[v] == 0 ? 0 : fixed.from(rank[v] / degree[v]);
    sum[v] = 0;
  };
  for_vertices([&](int64_t v) {
    rank[v] = 1;
    pass_on(v);
  });

  Sweep sweep;
  sweep.vertex_bytes = vertex_count * static_cast<int64_t>(sizeof(uint64_t));
  sweep.before_window = [&](VertexRange sources) { share.lock(sources); };
  sweep.after_window = [&](VertexRange sources) { share.unlock(sources); };
  for (int64_t i = 0; i < iterations; ++i) {
    grid.stream_columns(
        sweep, [&](const Edge& edge) { atomic_add(sum[edge.target], share[edge.source]); });
    for_vertices([&](int64_t v) {
      rank[v] = 0.15 + 0.85 * fixed.to_double(sum[v]);
      pass_on(v);
    });
  }

  const std::vector<double> ranks = rank.copy();
  double total = 0;
  for (const double r : ranks) total += r;
  std::printf("pagerank: %lld iterations, sum of ranks %.9f", static_cast<long long>(iterations),
              total);
  return ranks;
}

// GridGraph passes labels from source to target only, and needs graphs with every edge in both
// directions. Here a label goes both ways along an edge.
std::vector<int32_t> wcc(Grid& grid) {
  const int64_t vertex_count = grid.vertex_count();
  VertexFile<int32_t> label(grid.directory() + "/label", vertex_count);
  Bitmap active(vertex_count);
  Bitmap changed(vertex_count);
  for (int64_t v = 0; v < vertex_count; ++v) label[v] = static_cast<int32_t>(v);
  changed.assign(true);

  std::atomic<int64_t> change_count{vertex_count};
  std::vector<bool> partition_active(static_cast<size_t>(grid.partition_count()));
  Sweep sweep;
  sweep.vertex_bytes = vertex_count * static_cast<int64_t>(sizeof(int32_t));
  sweep.wants = [&](int i, int j) {
    return partition_active[static_cast<size_t>(i)] || partition_active[static_cast<size_t>(j)];
  };
  while (change_count > 0) {
    std::swap(active, changed);
    changed.assign(false);
    change_count = 0;
    for (int p = 0; p < grid.partition_count(); ++p) {
      partition_active[static_cast<size_t>(p)] = active.any(grid.partition(p));
    }
    const auto lower = [&](int32_t vertex, int32_t candidate) {
      if (atomic_min(label[vertex], candidate) && changed.set(vertex)) ++change_count;
    };
    grid.stream_columns(sweep, [&](const Edge& edge) {
      if (!active.get(edge.source) && !active.get(edge.target)) return;
      lower(edge.target, load_relaxed(label[edge.source]));
      lower(edge.source, load_relaxed(label[edge.target]));
    });
  }

  std::vector<int32_t> labels = label.copy();
  int64_t component_count = 0;
  for (int64_t v = 0; v < vertex_count; ++v) component_count += labels[static_cast<size_t>(v)] == v;
  std::printf("wcc: %lld components", static_cast<long long>(component_count));
  return labels;
}

// The parent is the lowest of the vertices one level up; -1 for one not reached.
std::vector<int32_t> bfs(Grid& grid, int64_t root) {
  const int64_t vertex_count = grid.vertex_count();
  if (root >= vertex_count) {
    die("--root %lld: the graph has %lld vertices", static_cast<long long>(root),
        static_cast<long long>(vertex_count));
  }
  // Unsigned, so that "none" (-1 in the file) is above every vertex.
  constexpr uint32_t kNone = UINT32_MAX;
  VertexFile<uint32_t> parent(grid.directory() + "/parent", vertex_count);
  Bitmap level(vertex_count);
  Bitmap next(vertex_count);
  Bitmap seen(vertex_count);  // in this level or above: their parents are final
  parent.fill(kNone);
  parent[root] = static_cast<uint32_t>(root);
  next.set(root);

  std::atomic<int64_t> next_count{1};
  int64_t reached_count = 0;
  int64_t level_count = 0;
  std::vector<bool> partition_active(static_cast<size_t>(grid.partition_count()));
  Sweep sweep;
  sweep.vertex_bytes = vertex_count * static_cast<int64_t>(sizeof(int32_t));
  sweep.wants = [&](int i, int) { return partition_active[static_cast<size_t>(i)]; };
  while (next_count > 0) {
    reached_count += next_count;
    ++level_count;
    std::swap(level, next);
    seen.merge(level);
    next.assign(false);
    next_count = 0;
    for (int p = 0; p < grid.partition_count(); ++p) {
      partition_active[static_cast<size_t>(p)] = level.any(grid.partition(p));
    }
    grid.stream_columns(sweep, [&](const Edge& edge) {
      if (!level.get(edge.source) || seen.get(edge.target)) return;
      atomic_min(parent[edge.target], static_cast<uint32_t>(edge.source));
      if (next.set(edge.target)) ++next_count;
    });
  }

  std::printf("bfs: %lld vertices in %lld levels from %lld", static_cast<long long>(reached_count),
              static_cast<long long>(level_count), static_cast<long long>(root));
  std::vector<int32_t> parents;
  for (const uint32_t p : parent.copy()) parents.push_back(static_cast<int32_t>(p));
  return parents;
}

DirectIo direct_io(const Arguments& arguments) {
  if (arguments.has("--direct") && arguments.has("--buffered")) arguments.wrong();
  if (arguments.has("--direct")) return DirectIo::kAlways;
  return arguments.has("--buffered") ? DirectIo::kNever : DirectIo::kAuto;
}

template <class T>
void finish(const Arguments& arguments, const std::vector<T>& result) {
  std::printf(", checksum %016llx\n", static_cast<unsigned long long>(checksum(result)));
  write_result(arguments.text("--out", ""), result);
}

int run(int argc, char** argv) {
  const Arguments arguments(argc, argv, kUsage,
                            {"--iterations", "--root", "--memory", "--threads", "--out"},
                            {"--direct", "--buffered", "--seconds"});
  const std::string what = arguments.word(0);
  const int64_t default_threads = std::max(1u, std::thread::hardware_concurrency());
  const int64_t thread_count = arguments.number("--threads", default_threads);
  if (thread_count < 1 || thread_count > 1024) die("--threads: 1 to 1024");
  Grid grid(arguments.word(1), {.memory_bytes = arguments.size_bytes("--memory", kPlentyBytes),
                                .thread_count = static_cast<int>(thread_count),
                                .direct = direct_io(arguments)});
  const Stopwatch watch;
  if (what == "pagerank") {
    finish(arguments, pagerank(grid, arguments.number("--iterations", 10)));
  } else if (what == "wcc") {
    finish(arguments, wcc(grid));
  } else if (what == "bfs") {
    finish(arguments, bfs(grid, arguments.number("--root", 0)));
  } else {
    arguments.wrong();
  }
  std::printf("streamed %lld bytes of edges\n", static_cast<long long>(grid.bytes_streamed()));
  if (arguments.has("--seconds")) std::printf("%.3f seconds\n", watch.seconds());
  return 0;
}

}  // namespace
}  // namespace engines

int main(int argc, char** argv) { return engines::run(argc, argv); }
