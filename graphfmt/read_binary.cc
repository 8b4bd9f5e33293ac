// Binary edge lists: read, checked in parallel, handed on as they are.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "graphfmt/edge_source.h"
#include "graphfmt/line.h"
#include "graphfmt/snap_text.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/file_io.h"
#include "iomgr/base/progress.h"

namespace graphlane {
namespace {

// Whole records of both sizes: a multiple of 8 and of 12.
constexpr size_t kPieceUnit = size_t{24} << 10;
constexpr size_t kPieceMax = size_t{3} << 20;

struct Piece {
  EdgeBatch batch;
  uint64_t offset = 0;  // in the file
  uint32_t vertex_max = 0;
};

// A piece costs its records and, in a writer behind us, up to four times that in
// text.
size_t piece_bytes(uint64_t budget_bytes, unsigned threads) {
  return std::clamp<size_t>(budget_bytes / threads / 5, kPieceUnit, kPieceMax) / kPieceUnit * kPieceUnit;
}

template <class E>
bool has_sound_weight(const E& edge) {
  if constexpr (requires { edge.weight; }) return std::isfinite(edge.weight);
  return true;
}

template <class E>
uint32_t vertex_max(const E* edges, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max({largest, edges[i].source, edges[i].target});
  return largest;
}

class BinaryReader {
 public:
  BinaryReader(const EdgeListOptions& options, EdgeSink& sink, unsigned threads)
      : options_(options),
        sink_(sink),
        threads_(threads),
        piece_bytes_(piece_bytes(options.memory_budget_bytes, threads)) {}

  Outcome<EdgeListSummary> run() {
    fd_ = Fd(::open(options_.path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat st{};
    if (!fd_ || ::fstat(fd_.get(), &st) != 0) return os_error(errno, options_.path, "cannot open");
    ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    Progress progress("read " + options_.path, static_cast<uint64_t>(st.st_size));
    Line<Piece> line;
    line.load = [this](Piece& piece) { return load(piece); };
    line.work = [this](Piece& piece) {
      return options_.weighted ? check<WeightedEdge>(piece) : check<Edge>(piece);
    };
    line.unload = [&](Piece& piece) {
      progress.add(piece.batch.records_bytes());
      summary_.edge_count += piece.batch.edge_count;
      summary_.vertex_count = std::max(summary_.vertex_count, uint64_t{piece.vertex_max} + 1);
      return sink_.take(piece.batch);
    };
    line.settle = [this](Piece&) { return sink_.settle(); };
    if (auto done = line.run(threads_); !done) return done.error();
    if (summary_.edge_count == 0) return make_error(EINVAL, "{}: no edges in it", options_.path);
    return summary_;
  }

 private:
  Outcome<bool> load(Piece& piece) {
    if (truncated_) return *truncated_;
    EdgeBatch& batch = piece.batch;
    if (auto grown = batch.records.reserve(piece_bytes_); !grown) return grown.error();
    auto count = read_full(fd_.get(), batch.records.data(), piece_bytes_);
    if (!count) return os_error(count.error().code, options_.path, "cannot read");
    const size_t edge_bytes = edge_size_bytes(options_.weighted);
    batch.weighted = options_.weighted;
    batch.edge_count = *count / edge_bytes;
    piece.offset = offset_;
    offset_ += batch.records_bytes();
    if (const size_t rest = *count % edge_bytes; rest != 0) {
      truncated_ = make_error(EINVAL, "{}: byte {}: truncated record: {} of {} bytes", options_.path,
                              offset_, rest, edge_bytes);
      // The whole records before it come first; they may hold an earlier error.
      if (batch.edge_count == 0) return *truncated_;
    }
    return batch.edge_count > 0;
  }

  template <class E>
  Outcome<void> check(Piece& piece) {
    const E* const edges = piece.batch.records.as<E>();
    const size_t count = piece.batch.edge_count;
    piece.vertex_max = vertex_max(edges, count);
    const uint64_t limit = options_.vertices == 0 ? kVertexCountMax : options_.vertices;
    const bool sound = piece.vertex_max < limit && std::all_of(edges, edges + count, has_sound_weight<E>);
    if (!sound) return first_error(edges, piece.offset, limit);
    return sink_.prepare(piece.batch);
  }

  // There is one: check() saw it.
  template <class E>
  Error first_error(const E* edge, uint64_t offset, uint64_t limit) const {
    while (edge->source < limit && edge->target < limit && has_sound_weight(*edge)) {
      ++edge;
      offset += sizeof(E);
    }
    if (edge->source >= limit) return bad_vertex(edge->source, offset);
    if (edge->target >= limit) return bad_vertex(edge->target, offset + 4);
    return make_error(EINVAL, "{}: byte {}: the weight is not a finite number", options_.path, offset + 8);
  }

  Error bad_vertex(uint32_t vertex, uint64_t offset) const {
    const bool negative = options_.format == EdgeFormat::kBin && static_cast<int32_t>(vertex) < 0;
    const std::string reason =
        negative ? fmt::format("'{}' is negative, and vertices count from 0", static_cast<int32_t>(vertex))
                 : vertex_out_of_range(std::to_string(vertex), options_.vertices);
    return make_error(EINVAL, "{}: byte {}: {}", options_.path, offset, reason);
  }

  const EdgeListOptions& options_;
  EdgeSink& sink_;
  const unsigned threads_;
  const size_t piece_bytes_;
  // load() only: one thread at a time.
  Fd fd_;
  uint64_t offset_ = 0;
  std::optional<Error> truncated_;
  // unload only: one thread at a time.
  EdgeListSummary summary_;
};

}  // namespace

Outcome<EdgeListSummary> read_binary(const EdgeListOptions& options, EdgeSink& sink) {
  return BinaryReader(options, sink, usable_threads(options.threads)).run();
}

}  // namespace graphlane
