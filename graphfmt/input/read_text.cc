// Text from a file, plain or compressed, by a TextPlan: cut at line ends, parsed by all threads.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "graphfmt/input/edge_source.h"
#include "graphfmt/input/list_head.h"
#include "graphfmt/input/weights.h"
#include "graphfmt/output/snap_text.h"
#include "graphfmt/sort/line.h"
#include "iomgr/base/size.h"

namespace graphlane::graphfmt {
namespace {

constexpr size_t kTextPieceMin = size_t{64} << 10;
constexpr size_t kTextPieceMax = size_t{4} << 20;

constexpr size_t kTokenShown = 24;  // of a quoted word in a reason

struct TextPiece {
  Buffer text;  // whole lines, except at the end of the file
  size_t text_bytes = 0;
  bool overlong = false;              // not a single line end in it
  bool begins = false;                // the file
  ListHead head;                      // if it begins the file
  bool below = false, above = false;  // edges on either side of the diagonal
  SnapParsed parsed;
  size_t names_bytes = 0;
  EdgeBatch batch;  // its records are names where a NameSink takes them
};

// A piece costs its text, two or three times that in records, and (in a following writer) up to six
// or nine times that in text again.
size_t text_piece_bytes(uint64_t budget_bytes, unsigned threads, bool weighted) {
  return std::clamp<size_t>(budget_bytes / threads / (weighted ? 14 : 9), kTextPieceMin,
                            kTextPieceMax);
}

class TextReader {
 public:
  TextReader(ByteSource& source, const TextPlan& plan, const EdgeListOptions& options,
             const EdgeTarget& target)
      : options_(options),
        plan_(plan),
        target_(target),
        threads_(usable_threads(options.threads)),
        piece_bytes_(text_piece_bytes(options.memory_budget_bytes, threads_, options.weighted)),
        source_(source),
        line_count_(plan.header_lines) {}

  ReadResult run() {
    source_.skip(plan_.header_bytes);
    if (auto grown = carry_.reserve(piece_bytes_); !grown) return grown.error();
    Line<TextPiece> line;
    line.load = [this](TextPiece& piece) { return load(piece); };
    line.work = [this](TextPiece& piece) { return parse(piece); };
    line.unload = [this](TextPiece& piece) { return deliver(piece); };
    line.settle = [this](TextPiece&) {
      return target_.numbers != nullptr ? target_.numbers->settle() : Outcome<void>();
    };
    if (auto done = line.run(threads_); !done) return done.error();
    return finish();
  }

 private:
  Outcome<bool> load(TextPiece& piece) {
    if (auto grown = piece.text.reserve(piece_bytes_); !grown) return grown.error();
    piece.begins = std::exchange(begins_, false);
    char* const text = piece.text.data();
    std::memcpy(text, carry_.data(), carry_bytes_);
    auto count = source_.read(text + carry_bytes_, piece_bytes_ - carry_bytes_);
    if (!count) return count.error();
    const bool at_end = *count < piece_bytes_ - carry_bytes_;
    piece.text_bytes = carry_bytes_ + *count;
    piece.overlong = false;
    carry_bytes_ = 0;
    if (at_end) return piece.text_bytes > 0;
    const void* newline = ::memrchr(text, '\n', piece.text_bytes);
    piece.overlong = newline == nullptr;
    if (piece.overlong) return true;
    const size_t whole_bytes = static_cast<size_t>(static_cast<const char*>(newline) + 1 - text);
    carry_bytes_ = piece.text_bytes - whole_bytes;
    std::memcpy(carry_.data(), text + whole_bytes, carry_bytes_);
    piece.text_bytes = whole_bytes;
    return true;
  }

  Outcome<void> parse(TextPiece& piece) {
    EdgeBatch& batch = piece.batch;
    const size_t room = target_.names != nullptr
                            ? names_bytes_max(piece_bytes_)
                            : snap_records_bytes_max(piece_bytes_, options_.weighted);
    if (auto grown = batch.records.reserve(room); !grown) return grown;
    const std::string_view text(piece.text.data(), piece.text_bytes);
    if (piece.overlong) {
      piece.parsed = {.issue = SnapIssue{0, "no line end in " + std::to_string(text.size()) +
                                                " bytes: " + quoted(text)}};
      return {};
    }
    if (target_.names != nullptr) {
      NamesParsed names = parse_names(text, plan_.dialect, batch.records.data());
      piece.parsed = std::move(names.lines);
      piece.names_bytes = names.names_bytes;
      if (piece.begins) {
        piece.head.look_at_names(batch.records.data(), piece.names_bytes, options_.weighted,
                                 options_.weight_type);
      }
      return {};
    }
    piece.parsed = plan_.quick ? parse_snap(text, plan_.dialect.numbers, batch.records.data())
                               : parse_columns(text, plan_.dialect, batch.records.data());
    batch.weighted = options_.weighted;
    batch.weight_type = options_.weight_type;
    batch.edge_count = piece.parsed.edge_count;
    if (plan_.mirror) count_halves(piece);
    if (piece.begins) piece.head.look_at(batch);
    if (plan_.target_offset != 0) shift_targets(piece);
    return target_.numbers->prepare(batch);
  }

  // A symmetric matrix holds one half, below its diagonal or above it.
  static void count_halves(TextPiece& piece) {
    piece.below = piece.above = false;
    const char* at = piece.batch.records.data();
    for (size_t i = 0; i < piece.batch.edge_count; ++i, at += piece.batch.edge_bytes()) {
      Edge edge;
      std::memcpy(&edge, at, sizeof edge);
      piece.below |= edge.source > edge.target;
      piece.above |= edge.source < edge.target;
    }
  }

  ListHead::Verdict judge_head() const {
    if (plan_.declared_lines || plan_.format == EdgeFormat::kKonect || options_.as_given) {
      return ListHead::Verdict::kEdge;
    }
    return head_.judge(summary_.edge_count);
  }

  // They fit, because the plan has checked the sum.
  void shift_targets(TextPiece& piece) const {
    const size_t edge_bytes = piece.batch.edge_bytes();
    char* at = piece.batch.records.data() + offsetof(Edge, target);
    for (size_t i = 0; i < piece.batch.edge_count; ++i, at += edge_bytes) {
      uint32_t target;
      std::memcpy(&target, at, sizeof target);
      target += static_cast<uint32_t>(plan_.target_offset);
      std::memcpy(at, &target, sizeof target);
      piece.parsed.vertex_max = std::max(piece.parsed.vertex_max, target);
    }
  }

  Outcome<void> deliver(TextPiece& piece) {
    const SnapParsed& parsed = piece.parsed;
    if (parsed.issue) {
      const uint64_t line = line_count_ + parsed.issue->line_index + 1;
      const bool may_be_header =
          summary_.edge_count + parsed.edge_count == 0 && !options_.columns.header &&
          (plan_.format == EdgeFormat::kCsv || plan_.format == EdgeFormat::kTsv ||
           plan_.format == EdgeFormat::kSnap) &&
          parsed.issue->reason.ends_with("is not a vertex number") &&
          std::isalpha(static_cast<unsigned char>(parsed.issue->reason[1])) != 0;
      const bool may_be_csv = plan_.format == EdgeFormat::kSnap &&
                              parsed.issue->reason.find(',') < kTokenShown &&
                              parsed.issue->reason.ends_with("is not a vertex number");
      if (may_be_csv) {
        return make_error(EINVAL, "{}: line {}: {} (--from csv reads columns with commas)",
                          source_.name(), line, parsed.issue->reason);
      }
      const bool may_be_comment =
          parsed.issue->reason.ends_with("is not a vertex number") &&
          std::string_view("/!*-").find(parsed.issue->reason[1]) != std::string_view::npos;
      if (may_be_comment) {
        return make_error(
            EINVAL,
            "{}: line {}: {} (comments begin with # or %: `grep -v '^{}' FILE` leaves "
            "others out)",
            source_.name(), line, parsed.issue->reason, parsed.issue->reason[1]);
      }
      return make_error(
          EINVAL, "{}: line {}: {}{}", source_.name(), line, parsed.issue->reason,
          may_be_header ? " (--header skips a first line of names, --renumber MAP takes words for "
                          "vertices)"
                        : "");
    }
    line_count_ += parsed.line_count;
    rounded_count_ += parsed.rounded_count;
    summary_.edge_count += parsed.edge_count;
    if (parsed.edge_count == 0) return {};
    if (piece.begins) {
      head_ = piece.head;
    } else {
      head_.add_later(parsed.vertex_max);
    }
    below_ |= piece.below;
    above_ |= piece.above;
    if (target_.names != nullptr) {
      return target_.names->take_names(piece.batch.records.data(), piece.names_bytes,
                                       parsed.edge_count);
    }
    summary_.vertex_count = std::max(summary_.vertex_count, uint64_t{parsed.vertex_max} + 1);
    return target_.numbers->take(piece.batch);
  }

  ReadResult finish() {
    const uint64_t declared = plan_.declared_lines.value_or(summary_.edge_count);
    if (summary_.edge_count != declared) {
      return make_error(
          EINVAL, "{}: line {}: {}, but the head of the file says {}: is it complete?",
          source_.name(), line_count_ + 1, counted(summary_.edge_count, "edge"), declared);
    }
    if (summary_.edge_count == 0) return make_error(EINVAL, "{}: no edges in it", source_.name());
    const ListHead::Verdict head = judge_head();
    if (head == ListHead::Verdict::kHead) {
      return make_error(EINVAL,
                        "{}: its first line counts what follows ({} lines): --header skips it "
                        "(--as-given believes that it is an edge)",
                        source_.name(), summary_.edge_count - 1);
    }
    if (plan_.declared_vertices) summary_.vertex_count = *plan_.declared_vertices;
    summary_.notes = plan_.notes;
    if (head == ListHead::Verdict::kDoubtful) {
      summary_.notes.push_back(fmt::format(
          "its first line, '{}', may count what follows, and is an edge now (--header skips it)",
          head_.text()));
    }
    if (plan_.noted_lines && *plan_.noted_lines != summary_.edge_count) {
      summary_.notes.push_back(fmt::format("{}, but the head of the file says {}",
                                           counted(summary_.edge_count, "edge"),
                                           *plan_.noted_lines));
    }
    if (below_ && above_) {
      summary_.notes.push_back(
          "the matrix is symmetric, but has entries below and above its diagonal: edges that are "
          "there twice are written twice (--simple writes them once)");
    }
    if (rounded_count_ > 0) {
      summary_.notes.push_back(fmt::format(
          "{} weights have more digits than {} holds, and are rounded{}", rounded_count_,
          name_of(options_.weight_type),
          options_.weight_type == WeightType::kFloat32 ? " (--weights float64 keeps more)" : ""));
    }
    return summary_;
  }

  // Constant.
  const EdgeListOptions& options_;
  const TextPlan& plan_;
  const EdgeTarget target_;
  const unsigned threads_;
  const size_t piece_bytes_;
  // load() only: one thread at a time.
  ByteSource& source_;
  Buffer carry_;  // the part of a line that the last piece ended with
  size_t carry_bytes_ = 0;
  bool begins_ = true;
  // deliver() only: one thread at a time.
  uint64_t line_count_;
  uint64_t rounded_count_ = 0;
  ListHead head_;
  bool below_ = false, above_ = false;
  EdgeListSummary summary_;
};

}  // namespace

ReadResult read_text(ByteSource& source, const TextPlan& plan, const EdgeListOptions& options,
                     const EdgeTarget& target) {
  return TextReader(source, plan, options, target).run();
}

}  // namespace graphlane::graphfmt
