#include "graphfmt/rmat.h"

#include <algorithm>

#include "graphfmt/output/edge_writer.h"
#include "graphfmt/sort/line.h"
#include "iomgr/base/process/progress.h"

namespace graphlane::graphfmt {
namespace {

constexpr size_t kPieceEdgesMin = size_t{1} << 12;
constexpr size_t kPieceEdgesMax = size_t{1} << 18;

// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): a good hash of a counter.
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The generator with its options turned into integers.
class Rmat {
 public:
  explicit Rmat(const RmatOptions& options)
      : scale_(options.scale),
        draws_per_edge_((options.scale + 1) / 2),
        origin_(mix(options.seed + kGolden)),
        below_a_(threshold(options.a)),
        below_ab_(threshold(options.a + options.b)),
        below_abc_(threshold(options.a + options.b + options.c)),
        scramble_(options.scramble) {}

  Edge edge(uint64_t index) const {
    uint64_t counter = origin_ + index * draws_per_edge_ * kGolden;
    uint64_t draw = 0;
    uint32_t source = 0, target = 0;
    for (unsigned level = 0; level < scale_; ++level) {
      // One draw of 64 bits serves two levels with 32 each.
      draw = level % 2 == 0 ? mix(counter += kGolden) : draw >> 32;
      const uint64_t r = draw & 0xffffffff;
      // Branch-free, because branches would be unpredictable: right is b or not-a-b-c.
      const uint32_t lower = r >= below_ab_;
      const uint32_t right = (r >= below_a_) - lower + (r >= below_abc_);
      source = source << 1 | lower;
      target = target << 1 | right;
    }
    if (scramble_) return {permuted(source), permuted(target)};
    return {source, target};
  }

 private:
  static uint64_t threshold(double share) { return static_cast<uint64_t>(share * 4294967296.0); }

  // A bijection of the numbers below 2^scale: each step is one.
  uint32_t permuted(uint32_t vertex) const {
    const uint64_t mask = (uint64_t{1} << scale_) - 1;
    uint64_t x = vertex;
    for (uint64_t round = 1; round <= 3; ++round) {
      const uint64_t key = mix(origin_ + round);
      x = (x * (key | 1) + (key >> 32)) & mask;
      x ^= x >> (scale_ / 2 + 1);
    }
    return static_cast<uint32_t>(x);
  }

  const unsigned scale_;
  const uint64_t draws_per_edge_;
  const uint64_t origin_;
  const uint64_t below_a_, below_ab_, below_abc_;
  const bool scramble_;
};

Outcome<void> check(const RmatOptions& options) {
  if (options.scale < 1 || options.scale > kRmatScaleMax) {
    return make_error(EINVAL, "scale {}: must be 1 to {}", options.scale, kRmatScaleMax);
  }
  if (options.edges == 0) return make_error(EINVAL, "0 edges: a graph needs one at least");
  const double d = 1 - options.a - options.b - options.c;
  if (!(options.a >= 0 && options.b >= 0 && options.c >= 0 && d >= -1e-9)) {
    return make_error(EINVAL, "a={} b={} c={}: must be shares of a total of 1", options.a,
                      options.b, options.c);
  }
  return {};
}

struct RmatPiece {
  uint64_t first = 0;
  EdgeBatch batch;
  uint32_t vertex_max = 0;
};

}  // namespace

Edge rmat_edge(const RmatOptions& options, uint64_t index) { return Rmat(options).edge(index); }

Outcome<EdgeListSummary> generate_rmat(const RmatOptions& options, EdgeSink& sink) {
  if (auto checked = check(options); !checked) return checked.error();
  const unsigned threads = usable_threads(options.threads);
  // An edge costs 8 bytes and, in a following writer, up to 22 of text.
  const size_t piece_edges = std::clamp<size_t>(
      options.memory_budget_bytes / threads / (sizeof(Edge) + 24), kPieceEdgesMin, kPieceEdgesMax);
  const Rmat rmat(options);
  Progress progress("generate", options.edges, false);
  EdgeListSummary summary;
  uint64_t next = 0;
  Line<RmatPiece> line;
  line.load = [&](RmatPiece& piece) -> Outcome<bool> {
    piece.first = next;
    piece.batch.edge_count = std::min<uint64_t>(piece_edges, options.edges - next);
    next += piece.batch.edge_count;
    return piece.batch.edge_count > 0;
  };
  line.work = [&](RmatPiece& piece) -> Outcome<void> {
    if (auto grown = piece.batch.records.reserve(piece_edges * sizeof(Edge)); !grown) return grown;
    Edge* const edges = piece.batch.records.as<Edge>();
    piece.vertex_max = 0;
    for (size_t i = 0; i < piece.batch.edge_count; ++i) {
      edges[i] = rmat.edge(piece.first + i);
      piece.vertex_max = std::max({piece.vertex_max, edges[i].source, edges[i].target});
    }
    return sink.prepare(piece.batch);
  };
  line.unload = [&](RmatPiece& piece) {
    progress.add(piece.batch.edge_count);
    summary.edge_count += piece.batch.edge_count;
    summary.vertex_count = std::max(summary.vertex_count, uint64_t{piece.vertex_max} + 1);
    return sink.take(piece.batch);
  };
  line.settle = [&](RmatPiece&) { return sink.settle(); };
  if (auto done = line.run(threads); !done) return done.error();
  return summary;
}

Outcome<EdgeListSummary> write_rmat(const RmatOptions& options, const EdgeListOutput& output) {
  return or_no_memory([&]() -> Outcome<EdgeListSummary> {
    if (auto checked = check(options); !checked) return checked.error();
    auto writer = EdgeWriter::create(output);
    if (!writer) return writer.error();
    auto summary = generate_rmat(options, **writer);
    if (!summary) return summary.error();
    if (auto finished = (*writer)->finish(*summary); !finished) return finished.error();
    return summary;
  });
}

}  // namespace graphlane::graphfmt
