// Binary edge lists: read, checked and made our records in parallel, or handed on as they are.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "graphfmt/input/edge_source.h"
#include "graphfmt/input/list_head.h"
#include "graphfmt/input/weights.h"
#include "graphfmt/output/snap_text.h"
#include "graphfmt/sort/line.h"

namespace graphlane::graphfmt {
namespace {

// Whole records of 8, 12, 16, 20 and 24 bytes.
constexpr size_t kBinaryPieceUnit = size_t{240} << 7;
constexpr size_t kBinaryPieceMax = size_t{3} << 20;

struct BinaryPiece {
  Buffer raw;  // records in the file's layout, if it differs
  EdgeBatch batch;
  Buffer names;
  size_t names_bytes = 0;
  uint64_t offset = 0;  // in the file
  uint32_t vertex_max = 0;
  ListHead head;  // if it begins the list
};

// A piece costs its records, perhaps twice, and, in a following writer, up to four times that in
// text.
size_t binary_piece_bytes(uint64_t budget_bytes, unsigned threads) {
  return std::clamp<size_t>(budget_bytes / threads / 6, kBinaryPieceUnit, kBinaryPieceMax) /
         kBinaryPieceUnit * kBinaryPieceUnit;
}

uint64_t vertex_at(const char* record, unsigned vertex_bytes, unsigned end) {
  uint64_t vertex = 0;
  std::memcpy(&vertex, record + end * vertex_bytes, vertex_bytes);
  return vertex;
}

class BinaryReader {
 public:
  BinaryReader(ByteSource& source, const EdgeListOptions& options, const EdgeTarget& target)
      : options_(options),
        target_(target),
        layout_(layout_of(options)),
        record_bytes_(layout_.record_bytes()),
        is_ours_(layout_.vertex_bytes == 4 &&
                 (!layout_.weight || *layout_.weight == options.weight_type)),
        threads_(usable_threads(options.threads)),
        piece_bytes_(binary_piece_bytes(options.memory_budget_bytes, threads_)),
        source_(source) {}

  ReadResult run() {
    Line<BinaryPiece> line;
    line.load = [this](BinaryPiece& piece) { return load(piece); };
    line.work = [this](BinaryPiece& piece) { return work(piece); };
    line.unload = [this](BinaryPiece& piece) -> Outcome<void> {
      summary_.vertex_count = std::max(summary_.vertex_count, uint64_t{piece.vertex_max} + 1);
      const size_t count = piece.batch.edge_count;
      if (piece.offset == 0) {
        head_ = piece.head;
      } else {
        head_.add_later(piece.vertex_max);
      }
      if (target_.names != nullptr) {
        summary_.edge_count += count;
        return target_.names->take_names(piece.names.data(), piece.names_bytes, count);
      }
      summary_.edge_count += count;
      return target_.numbers->take(piece.batch);
    };
    line.settle = [this](BinaryPiece&) {
      return target_.numbers != nullptr ? target_.numbers->settle() : Outcome<void>();
    };
    if (auto done = line.run(threads_); !done) return done.error();
    if (summary_.edge_count == 0) return make_error(EINVAL, "{}: no edges in it", source_.name());
    if (auto checked = check_head(); !checked) return checked.error();
    return summary_;
  }

 private:
  Buffer& raw_of(BinaryPiece& piece) const { return is_ours_ ? piece.batch.records : piece.raw; }

  Outcome<bool> load(BinaryPiece& piece) {
    if (truncated_) return *truncated_;
    Buffer& raw = raw_of(piece);
    if (auto grown = raw.reserve(piece_bytes_); !grown) return grown.error();
    auto count = source_.read(raw.data(), piece_bytes_);
    if (!count) return count.error();
    EdgeBatch& batch = piece.batch;
    batch.weighted = options_.weighted;
    batch.weight_type = options_.weight_type;
    batch.edge_count = *count / record_bytes_;
    piece.offset = offset_;
    offset_ += batch.edge_count * record_bytes_;
    if (const size_t rest = *count % record_bytes_; rest != 0) {
      truncated_ = make_error(EINVAL, "{}: byte {}: truncated record: {} of {} bytes",
                              source_.name(), offset_, rest, record_bytes_);
      // The whole records before it come first; they may hold an earlier error.
      if (batch.edge_count == 0) return *truncated_;
    }
    return batch.edge_count > 0;
  }

  Outcome<void> check_head() {
    const ListHead::Verdict head =
        options_.as_given ? ListHead::Verdict::kEdge : head_.judge(summary_.edge_count);
    if (!options_.as_given && layout_.vertex_bytes == 4 &&
        head_.is_wide_head(summary_.edge_count)) {
      return make_error(
          EINVAL,
          "{}: begins with counts of 64 bits: `tail -c +9 FILE` leaves one out, `tail "
          "-c +17 FILE` two (--as-given believes that they are edges)",
          source_.name());
    }
    if (head == ListHead::Verdict::kHead) {
      return make_error(
          EINVAL,
          "{}: its first record counts what follows ({} records): `tail -c +{} FILE | "
          "graphlane convert --from {} - OUT` leaves it out (--as-given believes that "
          "it is an edge)",
          source_.name(), summary_.edge_count - 1, record_bytes_ + 1, name_of(options_.format));
    }
    if (head == ListHead::Verdict::kDoubtful) {
      summary_.notes.push_back(
          fmt::format("its first record, '{}', may count what follows, and is an edge now (`tail "
                      "-c +{} FILE` leaves it out)",
                      head_.text(), record_bytes_ + 1));
    }
    return {};
  }

  Outcome<void> work(BinaryPiece& piece) {
    if (target_.names != nullptr) {
      Outcome<void> made = make_names(piece);
      if (made && piece.offset == 0) {
        piece.head.look_at_names(piece.names.data(), piece.names_bytes, layout_.weight.has_value(),
                                 options_.weight_type);
      }
      return made;
    }
    Outcome<void> made = is_ours_ ? check(piece) : make_ours(piece);
    if (made && piece.offset == 0) piece.head.look_at(piece.batch);
    return made ? target_.numbers->prepare(piece.batch) : made;
  }

  uint64_t limit() const {
    const uint64_t most = options_.vertices == 0 ? options_.vertex_count_max : options_.vertices;
    return options_.format == EdgeFormat::kBin ? std::min(most, uint64_t{1} << 31) : most;  // int32
  }

  // Checks records that need no conversion.
  Outcome<void> check(BinaryPiece& piece) {
    const char* at = piece.batch.records.data();
    const char* const end = at + piece.batch.records_bytes();
    uint32_t largest = 0;
    if (!layout_.weight) {
      const auto* const vertices = reinterpret_cast<const uint32_t*>(at);
      const size_t count = 2 * piece.batch.edge_count;
      for (size_t i = 0; i < count; ++i) largest = std::max(largest, vertices[i]);
    } else {
      for (; at < end; at += record_bytes_) {
        uint32_t ends[2];
        std::memcpy(ends, at, sizeof ends);
        largest = std::max({largest, ends[0], ends[1]});
        if (!is_sound_weight(at + sizeof ends)) return first_error(piece);
      }
    }
    piece.vertex_max = largest;
    return largest < limit() ? Outcome<void>() : first_error(piece);
  }

  bool is_sound_weight(const char* weight) const {
    if (*layout_.weight == WeightType::kInt64) return true;
    char ignored[8];
    return convert_weight(weight, *layout_.weight, ignored, WeightType::kFloat64) !=
           WeightFit::kNotNumber;
  }

  bool take_weight(const char* from, char* to) const {
    const WeightFit fit = convert_weight(from, *layout_.weight, to, options_.weight_type);
    return fit == WeightFit::kKept || (fit != WeightFit::kNotNumber && options_.round_weights);
  }

  // Other widths.
  Outcome<void> make_ours(BinaryPiece& piece) {
    EdgeBatch& batch = piece.batch;
    if (auto grown = batch.records.reserve(batch.records_bytes()); !grown) return grown;
    const char* from = piece.raw.data();
    char* to = batch.records.data();
    const size_t edge_bytes = batch.edge_bytes();
    piece.vertex_max = 0;
    for (size_t i = 0; i < batch.edge_count; ++i, from += record_bytes_, to += edge_bytes) {
      const uint64_t source = vertex_at(from, layout_.vertex_bytes, 0),
                     goal = vertex_at(from, layout_.vertex_bytes, 1);
      if (std::max(source, goal) >= limit()) return first_error(piece);
      const Edge edge{static_cast<uint32_t>(source), static_cast<uint32_t>(goal)};
      std::memcpy(to, &edge, sizeof edge);
      piece.vertex_max = std::max({piece.vertex_max, edge.source, edge.target});
      if (layout_.weight && !take_weight(from + 2 * layout_.vertex_bytes, to + sizeof edge)) {
        return first_error(piece);
      }
    }
    return {};
  }

  // Numbers are names, too.
  Outcome<void> make_names(BinaryPiece& piece) {
    const size_t weight_bytes = layout_.weight ? weight_size_bytes(options_.weight_type) : 0;
    constexpr size_t kNameMax = 24;
    if (auto grown = piece.names.reserve(piece.batch.edge_count * (2 * kNameMax + weight_bytes));
        !grown) {
      return grown;
    }
    const char* from = raw_of(piece).data();
    char* at = piece.names.data();
    for (size_t i = 0; i < piece.batch.edge_count; ++i, from += record_bytes_) {
      for (unsigned end = 0; end < 2; ++end) {
        char* const text = at + sizeof(uint32_t);
        const uint64_t vertex = vertex_at(from, layout_.vertex_bytes, end);
        // A column that is called int32 may be below 0.
        char* const behind =
            options_.format == EdgeFormat::kBin
                ? std::to_chars(text, text + kNameMax, static_cast<int32_t>(vertex)).ptr
                : std::to_chars(text, text + kNameMax, vertex).ptr;
        const auto length = static_cast<uint32_t>(behind - text);
        std::memcpy(at, &length, sizeof length);
        at = behind;
      }
      if (layout_.weight && !take_weight(from + 2 * layout_.vertex_bytes, at)) {
        return first_error(piece);
      }
      at += weight_bytes;
    }
    piece.names_bytes = static_cast<size_t>(at - piece.names.data());
    return {};
  }

  // There is one.
  Error first_error(BinaryPiece& piece) const {
    const char* record = raw_of(piece).data();
    uint64_t offset = piece.offset;
    for (size_t i = 0; i < piece.batch.edge_count;
         ++i, record += record_bytes_, offset += record_bytes_) {
      for (unsigned end = 0; end < 2 && target_.names == nullptr; ++end) {
        const uint64_t vertex = vertex_at(record, layout_.vertex_bytes, end);
        if (vertex >= limit()) return bad_vertex(vertex, offset + end * layout_.vertex_bytes);
      }
      if (!layout_.weight) continue;
      char ignored[8];
      const char* const weight = record + 2 * layout_.vertex_bytes;
      const WeightFit fit = convert_weight(weight, *layout_.weight, ignored, options_.weight_type);
      const uint64_t at = offset + 2 * layout_.vertex_bytes;
      if (fit == WeightFit::kNotNumber) {
        return make_error(EINVAL, "{}: byte {}: the weight is not a finite number", source_.name(),
                          at);
      }
      if (fit != WeightFit::kKept && !options_.round_weights) {
        char text[kWeightTextMax];
        const std::string_view shown(
            text, static_cast<size_t>(write_weight(weight, *layout_.weight, text) - text));
        return make_error(EINVAL,
                          "{}: byte {}: {} is not a weight of type {} (--round takes the nearest; "
                          "a list with --weights {} holds it)",
                          source_.name(), at, quoted(shown), name_of(options_.weight_type),
                          name_of(*layout_.weight));
      }
    }
    return make_error(EINVAL, "{}: byte {}: a record that is no edge", source_.name(),
                      piece.offset);
  }

  Error bad_vertex(uint64_t vertex, uint64_t offset) const {
    const bool negative = options_.format == EdgeFormat::kBin && static_cast<int32_t>(vertex) < 0;
    const std::string reason = negative
                                   ? fmt::format("'{}' is negative, and vertices count from 0",
                                                 static_cast<int32_t>(vertex))
                                   : vertex_out_of_range(std::to_string(vertex), options_.vertices,
                                                         options_.vertex_count_max);
    return make_error(EINVAL, "{}: byte {}: {}", source_.name(), offset, reason);
  }

  // Constant.
  const EdgeListOptions& options_;
  const EdgeTarget target_;
  const BinaryLayout layout_;
  const size_t record_bytes_;
  const bool is_ours_;
  const unsigned threads_;
  const size_t piece_bytes_;
  // load() only: one thread at a time.
  ByteSource& source_;
  uint64_t offset_ = 0;
  std::optional<Error> truncated_;
  // unload only: one thread at a time.
  ListHead head_;
  EdgeListSummary summary_;
};

}  // namespace

ReadResult read_binary(ByteSource& source, const EdgeListOptions& options,
                       const EdgeTarget& target) {
  return BinaryReader(source, options, target).run();
}

}  // namespace graphlane::graphfmt
