#include "graphfmt/input/text_plan.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "graphfmt/input/sniff.h"

namespace graphlane::graphfmt {
namespace {

constexpr size_t kHeadBytesSeen = size_t{64} << 10;  // of a file: byte_source.h

// Joined files begin with several marks.
size_t mark_bytes_of(std::string_view head) {
  size_t bytes = 0;
  while (head.substr(bytes).starts_with(kByteOrderMark)) bytes += kByteOrderMark.size();
  return bytes;
}

bool equals_in_lower_case(std::string_view word, std::string_view lower) {
  return std::equal(word.begin(), word.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

std::optional<uint64_t> whole_number(std::string_view word) {
  uint64_t number = 0;
  const auto [behind, status] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (status != std::errc{} || behind != word.data() + word.size()) return std::nullopt;
  return number;
}

// The lines of the head, one after the other.
class HeadLines {
 public:
  explicit HeadLines(std::string_view head) : head_(head) {}

  size_t bytes() const { return at_; }
  uint64_t count() const { return count_; }

  // Without its end; nothing when none is left. `whole`: the line end was seen.
  std::optional<std::string_view> peek() const {
    if (at_ >= head_.size()) return std::nullopt;
    std::string_view line = head_.substr(at_, head_.find('\n', at_) - at_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }
  void take() {
    const size_t newline = head_.find('\n', at_);
    at_ = newline == std::string_view::npos ? head_.size() : newline + 1;
    ++count_;
  }

 private:
  std::string_view head_;
  size_t at_ = 0;
  uint64_t count_ = 0;
};

// Whether lists often have a column of vertices by this name.
bool is_usual_name(std::string_view word) {
  for (const std::string_view name :
       {"source",     "target",   "src",      "dst",     "dest",      "from",      "to",
        "head",       "tail",     "start",    "end",     "u",         "v",         "id1",
        "id2",        "id_1",     "id_2",     "node1",   "node2",     "node_1",    "node_2",
        "fromnodeid", "tonodeid", "from_id",  "to_id",   "source_id", "target_id", "src_id",
        "dst_id",     "follower", "followee", "subject", "object"}) {
    if (equals_in_lower_case(word, name)) return true;
  }
  return false;
}

bool is_blank_line(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

class TextPlanner {
 public:
  TextPlanner(const EdgeListOptions& options, EdgeFormat format, std::string_view head)
      : options_(options),
        head_bytes_(head.size()),
        lines_(head),
        mark_bytes_(mark_bytes_of(head)) {
    plan_.format = format;
    lines_ = HeadLines(head.substr(mark_bytes_));
    SnapDialect& numbers = plan_.dialect.numbers;
    numbers.weighted = options.weighted;
    numbers.weight_type = options.weight_type;
    numbers.round_weights = options.round_weights;
    numbers.vertices = options.vertices;
    numbers.vertex_count_max = options.vertex_count_max;
  }

  Outcome<TextPlan> run() {
    Outcome<void> done;
    switch (plan_.format) {
      case EdgeFormat::kMtx: done = plan_mtx(); break;
      case EdgeFormat::kKonect: done = plan_konect(); break;
      case EdgeFormat::kDimacs: done = plan_dimacs(); break;
      case EdgeFormat::kCsv:
      case EdgeFormat::kTsv: done = plan_csv(); break;
      default: done = plan_snap(); break;
    }
    if (!done) return done.error();
    plan_.header_bytes = mark_bytes_ + lines_.bytes();
    plan_.header_lines = lines_.count();
    // Its last line may have been cut.
    if (plan_.header_bytes >= kHeadBytesSeen && plan_.header_bytes == head_bytes_) {
      return here("the head of the file is longer than 64 KiB");
    }
    if (options_.columns.source != 0) choose_columns();
    if (!options_.renumber_map.empty()) {
      if (plan_.target_offset != 0) {
        return here(
            "two sets of vertices with the same numbers: --renumber cannot tell them apart, and "
            "without it they are "
            "read");
      }
      // Names are no numbers yet.
      plan_.declared_vertices.reset();
      if (auto none = check_no_header(); !none) return none.error();
    }
    if (numbers().base == 1 && options_.renumber_map.empty()) {
      plan_.notes.push_back("vertices count from 1 in it, and from 0 now");
    }
    if (plan_.declared_vertices) {
      if (auto fits = check_declared_vertices(); !fits) return fits.error();
    }
    return plan_;
  }

 private:
  Error at_line(uint64_t line, const std::string& reason) const {
    return make_error(EINVAL, "line {}: {}", line, reason);
  }
  Error here(const std::string& reason) const { return at_line(lines_.count() + 1, reason); }

  SnapDialect& numbers() { return plan_.dialect.numbers; }

  void set_columns(unsigned count) {
    numbers().columns = count;
    plan_.dialect.column_count = count;
  }

  // --columns in place of the first ones.
  void choose_columns() {
    plan_.quick = false;
    ColumnsDialect& dialect = plan_.dialect;
    dialect.source = options_.columns.source;
    dialect.target = options_.columns.target;
    dialect.weight = options_.columns.weight != 0 ? options_.columns.weight
                                                  : std::max(dialect.source, dialect.target) + 1;
    dialect.column_count = 0;
  }

  void skip_header_line() {
    while (auto line = lines_.peek()) {
      const bool is_comment =
          is_blank_line(*line) || (*line)[line->find_first_not_of(" \t")] == '#';
      lines_.take();
      if (!is_comment) return;
    }
  }

  // Where words are vertices, a header is an edge like any other: of words, before numbers; or of
  // the words that columns are called by.
  Outcome<void> check_no_header() const {
    constexpr size_t kLinesToJudge = 4;
    if (options_.columns.header || options_.as_given) return {};
    bool is_usual = false, is_mixed = false;
    std::vector<bool> are_numbers;
    HeadLines lines = lines_;
    const char* const comments = plan_.dialect.numbers.comments;
    for (auto line = lines.peek(); line && are_numbers.size() < kLinesToJudge;
         lines.take(), line = lines.peek()) {
      if (is_blank_line(*line) || (*line)[0] == comments[0] || (*line)[0] == comments[1]) continue;
      const auto columns = columns_of(*line, plan_.dialect.delimiter);
      const auto word = [&](unsigned column) {
        if (column > columns.size()) return std::string_view();
        std::string_view text = columns[column - 1];
        if (text.size() > 1 && text.front() == '"') text = text.substr(1, text.size() - 2);
        return text;
      };
      const auto is_number = [](std::string_view text) {
        return !text.empty() && text.find_first_not_of("-0123456789") == std::string_view::npos;
      };
      const std::string_view source = word(plan_.dialect.source),
                             target = word(plan_.dialect.target);
      if (are_numbers.empty()) {
        is_usual = is_usual_name(source) && is_usual_name(target);
        is_mixed = is_number(source) != is_number(target);
      }
      are_numbers.push_back(is_number(source) && is_number(target));
    }
    const bool are_words_alone =
        are_numbers.empty() || are_numbers[0] || are_numbers.size() < (is_mixed ? 3 : 2) ||
        std::find(are_numbers.begin() + 1, are_numbers.end(), false) != are_numbers.end();
    if (are_words_alone && !(is_usual && are_numbers.size() > 1)) return {};
    return here("looks like a header: --header skips it (--as-given believes that it is an edge)");
  }

  Outcome<void> plan_snap() {
    if (options_.columns.delimiter != 0) return plan_csv();
    if (options_.columns.header) skip_header_line();
    set_columns(numbers().weighted ? 3 : 2);
    numbers().columns = 0;
    return {};
  }

  Outcome<void> plan_csv() {
    plan_.quick = false;
    ColumnsDialect& dialect = plan_.dialect;
    dialect.quoted = true;
    dialect.delimiter = plan_.format == EdgeFormat::kTsv ? '\t' : options_.columns.delimiter;
    if (options_.columns.delimiter != 0) dialect.delimiter = options_.columns.delimiter;
    if (dialect.delimiter == 0) dialect.delimiter = usual_delimiter();
    if (dialect.delimiter == ' ') dialect.quoted = false;
    if (options_.columns.header) skip_header_line();
    dialect.column_count = numbers().weighted ? 3 : 2;
    return {};
  }

  // The first of them that a line has.
  char usual_delimiter() const {
    HeadLines lines = lines_;
    for (auto line = lines.peek(); line; lines.take(), line = lines.peek()) {
      if (line->empty() || line->front() == '#') continue;
      for (const char delimiter : {',', ';', '\t', '|'}) {
        if (line->find(delimiter) != std::string_view::npos) return delimiter;
      }
      break;
    }
    return ',';
  }

  Outcome<void> plan_mtx() {
    while (lines_.peek() && is_blank_line(*lines_.peek())) lines_.take();
    const auto banner = lines_.peek();
    if (!banner || !is_mtx_banner(*banner)) {
      return here("does not begin with %%MatrixMarket");
    }
    const auto words = columns_of(*banner, ' ');
    if (words.size() < 5) return here("a banner of five words is expected: " + quoted(*banner));
    if (!equals_in_lower_case(words[1], "matrix")) {
      return here(fmt::format("{} is no matrix", quoted(words[1])));
    }
    if (equals_in_lower_case(words[2], "array")) {
      return here(
          "is a dense matrix ('array'), not a sparse one: write it with scipy.io.mmwrite(…, "
          "scipy.sparse.coo_array(…))");
    }
    if (!equals_in_lower_case(words[2], "coordinate")) {
      return here(fmt::format("{}: coordinate is expected", quoted(words[2])));
    }
    unsigned columns = 3;
    const bool is_complex = equals_in_lower_case(words[3], "complex");
    const bool is_pattern = equals_in_lower_case(words[3], "pattern");
    if (is_pattern) columns = 2;
    if (is_complex) columns = 4;
    if (!is_pattern && !is_complex && !equals_in_lower_case(words[3], "real") &&
        !equals_in_lower_case(words[3], "integer") &&
        !equals_in_lower_case(words[3], "unsigned-integer") &&
        !equals_in_lower_case(words[3], "double")) {
      return here(fmt::format("{}: real, integer or pattern is expected", quoted(words[3])));
    }
    if (numbers().weighted && is_pattern) {
      return here("a pattern matrix has no weights: leave -w out");
    }
    if (numbers().weighted && is_complex) {
      return here("complex values are no weights: without -w they are left out");
    }
    const bool skew = equals_in_lower_case(words[4], "skew-symmetric");
    plan_.mirror = skew || equals_in_lower_case(words[4], "symmetric") ||
                   equals_in_lower_case(words[4], "hermitian");
    plan_.negate = skew;
    if (!plan_.mirror && !equals_in_lower_case(words[4], "general")) {
      return here(fmt::format("{}: general, symmetric, skew-symmetric or hermitian is expected",
                              quoted(words[4])));
    }
    lines_.take();
    if (auto sized = read_mtx_size(); !sized) return sized;
    if (!numbers().weighted && !is_pattern) {
      plan_.notes.push_back("the matrix's values are left out (-w keeps them)");
    }
    if (plan_.mirror) {
      plan_.notes.push_back("the matrix is symmetric: every entry is an edge both ways");
    }
    set_columns(columns);
    numbers().base = 1;
    return {};
  }

  Outcome<void> read_mtx_size() {
    while (auto line = lines_.peek()) {
      if (!is_blank_line(*line) && line->front() != '%') break;
      lines_.take();
    }
    const auto line = lines_.peek();
    if (!line) return here("no line 'ROWS COLUMNS ENTRIES' in the first 64 KiB");
    const auto words = columns_of(*line, ' ');
    std::array<uint64_t, 3> sizes = {};
    bool are_sizes = words.size() == sizes.size();
    for (size_t i = 0; are_sizes && i < sizes.size(); ++i) {
      const auto number = whole_number(words[i]);
      are_sizes = number.has_value();
      sizes[i] = number.value_or(0);
    }
    if (!are_sizes) return here("'ROWS COLUMNS ENTRIES' is expected: " + quoted(*line));
    const auto [rows, columns, entries] = sizes;
    if (rows != columns) {
      return here(fmt::format(
          "a matrix of {} x {}: rows and columns are different things, and no graph's vertices",
          rows, columns));
    }
    plan_.declared_vertices = rows;
    plan_.declared_lines = entries;
    lines_.take();
    return {};
  }

  // % asym positive
  // % EDGES SOURCES TARGETS      may lack
  Outcome<void> plan_konect() {
    std::optional<uint64_t> edges, sources, targets;
    bool bipartite = false, symmetric = false;
    while (auto line = lines_.peek()) {
      if (!line->starts_with('%')) break;
      const auto words = columns_of(line->substr(1), ' ');
      if (lines_.count() == 0) {
        bipartite = words[0] == "bip";
        symmetric = words[0] == "sym";
      } else if (words.size() >= 2 && whole_number(words[0]) && !edges) {
        edges = whole_number(words[0]);
        sources = whole_number(words[1]);
        targets = words.size() > 2 ? whole_number(words[2]) : sources;
      }
      lines_.take();
    }
    unsigned columns = 2;
    if (const auto line = lines_.peek()) {
      columns = static_cast<unsigned>(columns_of(*line, ' ').size());
    }
    if (numbers().weighted && columns < 3) return here("no column of weights: leave -w out");
    if (bipartite) {
      if (!sources || !targets) {
        return here("a bipartite graph without '% EDGES SOURCES TARGETS' in its head");
      }
      plan_.target_offset = *sources;
      plan_.declared_vertices = *sources + *targets;
      plan_.notes.push_back(
          fmt::format("two sets of vertices: those of the second column count from {}", *sources));
    }
    if (!numbers().weighted && columns > 2) {
      plan_.notes.push_back(
          fmt::format("KONECT: columns behind the second are left out (-w keeps weights)"));
    }
    if (symmetric && !options_.undirected) {
      plan_.notes.push_back(
          "KONECT: an undirected graph, of which each edge is there once (--undirected writes both "
          "ways)");
    }
    plan_.noted_lines = edges;
    set_columns(std::max(columns, 2u));
    numbers().base = 1;
    return {};
  }

  Outcome<void> plan_dimacs() {
    numbers().comments[0] = numbers().comments[1] = 'c';
    while (auto line = lines_.peek()) {
      if (!is_blank_line(*line) && *line != "c" && !line->starts_with("c ")) break;
      lines_.take();
    }
    const auto line = lines_.peek();
    if (!line || !line->starts_with("p ")) return here("'p sp VERTICES ARCS' is expected");
    const auto words = columns_of(*line, ' ');
    const auto vertices = words.size() > 2 ? whole_number(words[2]) : std::nullopt;
    const auto arcs = words.size() > 3 ? whole_number(words[3]) : std::nullopt;
    if (!vertices || !arcs) return here("'p sp VERTICES ARCS' is expected: " + quoted(*line));
    const bool shortest_paths = words[1] == "sp";
    const bool undirected = words[1] == "edge" || words[1] == "col";
    if (!shortest_paths && !undirected) {
      return here(
          fmt::format("a DIMACS problem of kind {}, which is not read: 'sp', 'edge' or 'col' is",
                      quoted(words[1])));
    }
    if (undirected && numbers().weighted) {
      return here("a DIMACS graph of this kind has no weights: leave -w out");
    }
    if (undirected && !options_.undirected) {
      plan_.notes.push_back(
          "DIMACS: an undirected graph, of which each edge is there once (--undirected writes both "
          "ways)");
    }
    if (shortest_paths && !numbers().weighted) {
      plan_.notes.push_back("DIMACS: the arcs' weights are left out (-w keeps them)");
    }
    plan_.dialect.prefix = numbers().prefix = shortest_paths ? 'a' : 'e';
    plan_.declared_vertices = *vertices;
    plan_.declared_lines = *arcs;
    lines_.take();
    set_columns(shortest_paths ? 3 : 2);
    numbers().base = 1;
    return {};
  }

  Outcome<void> check_declared_vertices() {
    const uint64_t declared = *plan_.declared_vertices;
    if (declared > options_.vertex_count_max && options_.renumber_map.empty()) {
      return at_line(lines_.count(), fmt::format("{} vertices: this output has at most {}",
                                                 declared, options_.vertex_count_max));
    }
    if (options_.vertices != 0 && options_.vertices < declared) {
      return at_line(lines_.count(), fmt::format("{} vertices are more than --vertices {}",
                                                 declared, options_.vertices));
    }
    // A vertex beyond it is damage.
    if (plan_.target_offset == 0) numbers().vertices = declared;
    return {};
  }

  const EdgeListOptions& options_;
  const size_t head_bytes_;
  HeadLines lines_;
  const size_t mark_bytes_;
  TextPlan plan_;
};

}  // namespace

Outcome<TextPlan> plan_text(const EdgeListOptions& options, EdgeFormat format,
                            std::string_view head) {
  return TextPlanner(options, format, head).run();
}

}  // namespace graphlane::graphfmt
