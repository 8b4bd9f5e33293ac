#include "graphfmt/input/columns_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "graphfmt/input/weights.h"

namespace graphlane::graphfmt {
namespace {

bool is_column_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_column_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_column_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Takes one column off the front of `line`; `ended` when no delimiter was behind it.
struct ColumnCutter {
  std::string_view rest;
  char delimiter;
  bool quoted;
  bool ended = false;
  bool broken = false;  // a quote that is not closed, or text behind the closing one

  std::string_view next() {
    if (delimiter == ' ') return next_word();
    if (quoted) {
      const size_t begin = rest.find_first_not_of(" \t");
      if (begin != std::string_view::npos && rest[begin] == '"') return next_quoted(begin);
    }
    const size_t end = std::min(rest.find(delimiter), rest.size());
    const std::string_view column = without_blanks(rest.substr(0, end));
    cut(end);
    return column;
  }

 private:
  void cut(size_t end) {
    ended = end == rest.size();
    rest.remove_prefix(ended ? end : end + 1);
  }

  std::string_view next_word() {
    const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    const std::string_view column = rest.substr(0, end);
    rest.remove_prefix(end);
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    ended = rest.empty();
    return column;
  }

  // With its quotes; a doubled one is inside.
  std::string_view next_quoted(size_t begin) {
    size_t close = begin + 1;
    while (true) {
      close = rest.find('"', close);
      if (close == std::string_view::npos) {
        broken = true;
        ended = true;
        return rest;
      }
      if (close + 1 == rest.size() || rest[close + 1] != '"') break;
      close += 2;
    }
    const std::string_view column = rest.substr(begin, close + 1 - begin);
    const size_t end = std::min(rest.find(delimiter, close + 1), rest.size());
    broken = !without_blanks(rest.substr(close + 1, end - close - 1)).empty();
    cut(end);
    return column;
  }
};

// A column's text: without the quotes around it, "" for a quote.
std::string_view unquoted(std::string_view column, std::string& scratch) {
  if (column.size() < 2 || column.front() != '"') return column;
  column = column.substr(1, column.size() - 2);
  if (column.find('"') == std::string_view::npos) return column;
  scratch.clear();
  for (size_t at = 0; at < column.size(); ++at) {
    scratch += column[at];
    if (column[at] == '"') ++at;
  }
  return scratch;
}

struct LineColumns {
  std::string_view source, target, weight;
  std::string source_scratch, target_scratch;
  unsigned count = 0;
};

// Why the line cannot be read, or nothing.
std::optional<std::string> split_line(std::string_view line, const ColumnsDialect& dialect,
                                      LineColumns& columns) {
  const bool weighted = dialect.numbers.weighted;
  const unsigned last = std::max({dialect.source, dialect.target, weighted ? dialect.weight : 0});
  ColumnCutter cutter{line, dialect.delimiter, dialect.quoted};
  if (dialect.prefix != 0) {
    const std::string_view prefix = cutter.next();
    if (prefix.size() != 1 || prefix[0] != dialect.prefix || cutter.ended) {
      return fmt::format("{} does not begin with '{} '", quoted(line), dialect.prefix);
    }
  }
  columns.count = 0;
  while (true) {
    const std::string_view column = cutter.next();
    if (cutter.broken) {
      return fmt::format("a quoted column that does not end on its line: {}", quoted(line));
    }
    ++columns.count;
    if (columns.count == dialect.source) columns.source = unquoted(column, columns.source_scratch);
    if (columns.count == dialect.target) columns.target = unquoted(column, columns.target_scratch);
    if (weighted && columns.count == dialect.weight) columns.weight = column;
    if (cutter.ended) break;
    // The columns behind are not needed, nor their number.
    if (dialect.column_count == 0 && columns.count == last && !dialect.quoted) break;
  }
  if (columns.weight.size() >= 2 && columns.weight.front() == '"') {
    columns.weight = columns.weight.substr(1, columns.weight.size() - 2);
  }
  const bool too_few = columns.count < last;
  if (!too_few && (dialect.column_count == 0 || columns.count == dialect.column_count)) {
    return std::nullopt;
  }
  const unsigned expected = dialect.column_count != 0 ? dialect.column_count : last;
  return fmt::format("{} column{} where {}{} are expected: {}{}", columns.count,
                     columns.count == 1 ? "" : "s", dialect.column_count == 0 ? "at least " : "",
                     expected, quoted(line),
                     too_few && columns.count == 1 ? " (--delimiter says what is between columns)"
                     : too_few                     ? ""
                                                   : " (--columns says which are read)");
}

bool parse_number(std::string_view token, const SnapDialect& dialect, uint32_t& vertex) {
  uint64_t number = 0;
  for (const char c : token) {
    const auto digit = static_cast<unsigned char>(c - '0');
    if (digit > 9) return false;
    number = std::min<uint64_t>(number * 10 + digit, uint64_t{1} << 40);
  }
  number -= dialect.base;
  vertex = static_cast<uint32_t>(number);
  return !token.empty() && number < dialect.limit();
}

// `weight` gets the bytes. Why it cannot, or nothing.
std::optional<std::string> parse_column_weight(const LineColumns& columns,
                                               const SnapDialect& dialect, char* weight,
                                               SnapParsed& parsed) {
  if (!dialect.weighted) return std::nullopt;
  const WeightFit fit = read_weight(columns.weight, dialect.weight_type, weight);
  if (fit == WeightFit::kNotNumber || (fit == WeightFit::kLost && !dialect.round_weights)) {
    return why_not_weight(columns.weight, dialect.weight_type);
  }
  parsed.rounded_count += fit != WeightFit::kKept;
  return std::nullopt;
}

// Calls use(columns) for every line that is an edge's, until it returns a reason.
template <class Use>
SnapParsed for_each_line(std::string_view text, const ColumnsDialect& dialect, const Use& use) {
  SnapParsed parsed;
  LineColumns columns;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string_view shown = without_blanks(line);
    const char* const comments = dialect.numbers.comments;
    if (!shown.empty() && shown[0] != comments[0] && shown[0] != comments[1]) {
      auto issue = split_line(dialect.delimiter == '\t' ? line : shown, dialect, columns);
      if (!issue) issue = use(columns, parsed);
      if (issue) {
        parsed.issue = SnapIssue{parsed.line_count, *issue};
        return parsed;
      }
      ++parsed.edge_count;
    }
    if (newline == std::string_view::npos) break;
    ++parsed.line_count;
    text.remove_prefix(newline + 1);
  }
  return parsed;
}

char* put_name(std::string_view name, char* to) {
  const auto length = static_cast<uint32_t>(name.size());
  std::memcpy(to, &length, sizeof length);
  std::memcpy(to + sizeof length, name.data(), name.size());
  return to + sizeof length + name.size();
}

}  // namespace

SnapParsed parse_columns(std::string_view text, const ColumnsDialect& dialect, char* records) {
  const SnapDialect& numbers = dialect.numbers;
  return for_each_line(
      text, dialect,
      [&](const LineColumns& columns, SnapParsed& parsed) -> std::optional<std::string> {
        Edge edge{};
        if (!parse_number(columns.source, numbers, edge.source)) {
          return why_not_vertex(columns.source, numbers);
        }
        if (!parse_number(columns.target, numbers, edge.target)) {
          return why_not_vertex(columns.target, numbers);
        }
        if (auto issue = parse_column_weight(columns, numbers, records + sizeof edge, parsed)) {
          return issue;
        }
        std::memcpy(records, &edge, sizeof edge);
        records += numbers.edge_bytes();
        parsed.vertex_max = std::max({parsed.vertex_max, edge.source, edge.target});
        return std::nullopt;
      });
}

NamesParsed parse_names(std::string_view text, const ColumnsDialect& dialect, char* names) {
  char* at = names;
  const size_t weight_bytes =
      dialect.numbers.weighted ? weight_size_bytes(dialect.numbers.weight_type) : 0;
  NamesParsed parsed;
  parsed.lines = for_each_line(
      text, dialect,
      [&](const LineColumns& columns, SnapParsed& lines) -> std::optional<std::string> {
        if (columns.source.empty() || columns.target.empty()) return "a vertex without a name";
        char weight[8];
        if (auto issue = parse_column_weight(columns, dialect.numbers, weight, lines)) return issue;
        at = put_name(columns.target, put_name(columns.source, at));
        std::memcpy(at, weight, weight_bytes);
        at += weight_bytes;
        return std::nullopt;
      });
  parsed.names_bytes = static_cast<size_t>(at - names);
  return parsed;
}

std::vector<std::string_view> columns_of(std::string_view line, char delimiter) {
  std::vector<std::string_view> columns;
  ColumnCutter cutter{without_blanks(line), delimiter, delimiter != ' '};
  do {
    columns.push_back(cutter.next());
  } while (!cutter.ended && !cutter.broken);
  return columns;
}

}  // namespace graphlane::graphfmt
