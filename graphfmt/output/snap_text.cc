#include "graphfmt/output/snap_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "graphfmt/input/weights.h"

namespace graphlane::graphfmt {
namespace {

constexpr size_t kQuoteMax = 24;

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

const char* skip_blanks(const char* at, const char* end) {
  while (at < end && is_blank(*at)) ++at;
  return at;
}

std::string_view token_at(const char* at, const char* end) {
  return {at, static_cast<size_t>(std::find_if(at, end, is_blank) - at)};
}

unsigned column_count(const char* at, const char* end) {
  unsigned count = 0;
  for (at = skip_blanks(at, end); at < end; at = skip_blanks(at, end)) {
    at += token_at(at, end).size();
    ++count;
  }
  return count;
}

// The number at `at`, from `base`, less that; `at` moves behind it. False if no such
// number below `limit` with a blank or the end behind it stands there.
bool parse_vertex(const char*& at, const char* end, uint32_t base, uint64_t limit,
                  uint32_t& vertex) {
  uint64_t number = 0;
  const char* digit = at;
  // Leading zeros may make a number long, not large; above the limit it only
  // has to stay there.
  for (; digit < end && is_digit(*digit); ++digit) {
    number =
        std::min<uint64_t>(number * 10 + static_cast<unsigned>(*digit - '0'), uint64_t{1} << 40);
  }
  number -= base;  // below it: far above the limit
  if (digit == at || number >= limit || (digit < end && !is_blank(*digit))) return false;
  at = digit;
  vertex = static_cast<uint32_t>(number);
  return true;
}

// The slow look at a line that the fast one refused.
std::string why_not_edge(const char* at, const char* end, const SnapDialect& dialect) {
  const std::string_view line(at, static_cast<size_t>(end - at));
  if (dialect.prefix != 0) {
    const bool has_prefix = *at == dialect.prefix && end - at > 1 && is_blank(at[1]);
    if (!has_prefix) {
      return fmt::format("{} does not begin with '{} '", quoted(line), dialect.prefix);
    }
    ++at;
  }
  const unsigned expected = dialect.expected_columns();
  const unsigned columns = column_count(at, end);
  for (unsigned column = 0; column < std::min(columns, 2u); ++column) {
    at = skip_blanks(at, end);
    uint32_t vertex;
    if (!parse_vertex(at, end, dialect.base, dialect.limit(), vertex)) {
      return why_not_vertex(token_at(at, end), dialect);
    }
  }
  if (columns != expected) {
    const char* const plural = columns == 1 ? "" : "s";
    std::string hint;
    if (columns > expected && dialect.columns == 0) {
      hint = dialect.weighted ? " (--columns 1,2,3 takes the first three)"
             : columns == 3   ? " (-w reads the third as weights, --columns 1,2 leaves it out)"
                              : " (--columns 1,2 takes the first two)";
    } else if (columns == 2 && dialect.weighted) {
      hint = " (without -w, edges have no weights)";
    }
    return fmt::format("{} column{} where {} are expected: {}{}", columns, plural, expected,
                       quoted(line), hint);
  }
  return why_not_weight(token_at(skip_blanks(at, end), end), dialect.weight_type);
}

// One line that holds an edge; false if it does not. `edge`: source, target, and the weight's bytes
// where a record of its type has them.
inline bool parse_edge(const char* at, const char* end, const SnapDialect& dialect, uint64_t limit,
                       char* edge, uint32_t& vertex_max, uint64_t& rounded_count) {
  if (dialect.prefix != 0) {
    if (*at != dialect.prefix || end - at < 2 || !is_blank(at[1])) return false;
    at = skip_blanks(at + 1, end);
  }
  uint32_t source = 0, target = 0;
  if (!parse_vertex(at, end, dialect.base, limit, source)) return false;
  at = skip_blanks(at, end);
  if (!parse_vertex(at, end, dialect.base, limit, target)) return false;
  at = skip_blanks(at, end);
  if (dialect.weighted) {
    const std::string_view token = token_at(at, end);
    const WeightFit fit = read_weight(token, dialect.weight_type, edge + 2 * sizeof(uint32_t));
    if (fit == WeightFit::kNotNumber || (fit == WeightFit::kLost && !dialect.round_weights)) {
      return false;
    }
    rounded_count += fit != WeightFit::kKept;
    at = skip_blanks(at + token.size(), end);
  }
  for (unsigned left = dialect.expected_columns() - dialect.used_columns(); left > 0; --left) {
    if (at == end) return false;
    at = skip_blanks(at + token_at(at, end).size(), end);
  }
  std::memcpy(edge, &source, sizeof source);
  std::memcpy(edge + sizeof source, &target, sizeof target);
  vertex_max = std::max({vertex_max, source, target});
  return at == end;
}

}  // namespace

SnapParsed parse_snap(std::string_view text, const SnapDialect& given, char* records) {
  // Copies that nothing else points at: writing a record need not have them read again.
  const SnapDialect dialect = given;
  const uint64_t limit = dialect.limit();
  const size_t edge_bytes = dialect.edge_bytes();
  uint32_t vertex_max = 0;
  uint64_t rounded_count = 0, line_count = 0;
  char* record = records;
  SnapParsed parsed;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const char* newline =
        static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
    const char* const next = newline != nullptr ? newline + 1 : end;
    const char* line_end = newline != nullptr ? newline : end;
    if (line_end > at && line_end[-1] == '\r') --line_end;
    at = skip_blanks(at, line_end);
    if (at < line_end && *at != dialect.comments[0] && *at != dialect.comments[1]) {
      if (!parse_edge(at, line_end, dialect, limit, record, vertex_max, rounded_count)) {
        parsed.issue = SnapIssue{line_count, why_not_edge(at, line_end, given)};
        break;
      }
      record += edge_bytes;
    }
    line_count += newline != nullptr;
    at = next;
  }
  parsed.edge_count = static_cast<size_t>(record - records) / edge_bytes;
  parsed.line_count = line_count;
  parsed.vertex_max = vertex_max;
  parsed.rounded_count = rounded_count;
  return parsed;
}

char* format_snap(const EdgeBatch& batch, char* text, const LineStyle& given) {
  const auto [delimiter, base, prefix] = given;
  const size_t edge_bytes = batch.edge_bytes();
  const char* record = batch.records.data();
  for (size_t i = 0; i < batch.edge_count; ++i, record += edge_bytes) {
    Edge edge{};
    std::memcpy(&edge, record, sizeof edge);
    char* const end = text + snap_line_bytes_max(batch.weighted);
    if (prefix != 0) {
      *text++ = prefix;
      *text++ = ' ';
    }
    text = std::to_chars(text, end, uint64_t{edge.source} + base).ptr;
    *text++ = delimiter;
    text = std::to_chars(text, end, uint64_t{edge.target} + base).ptr;
    if (batch.weighted) {
      *text++ = delimiter;
      text = write_weight(record + sizeof edge, batch.weight_type, text);
    }
    *text++ = '\n';
  }
  return text;
}

std::string quoted(std::string_view token) {
  std::string text = "'";
  for (const char c : token.substr(0, kQuoteMax)) {
    if (c == '\t') {
      text += ' ';
    } else if (c >= 0x20 && c < 0x7f) {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text + (token.size() > kQuoteMax ? "…'" : "'");
}

std::string vertex_out_of_range(std::string_view number, uint64_t vertices,
                                uint64_t vertex_count_max) {
  if (vertices != 0) {
    return fmt::format("{} is not below the vertex count, {}", quoted(number), vertices);
  }
  const bool is_list = vertex_count_max == kListVertexCountMax;
  return fmt::format(
      "{} is above {}, the largest vertex number{} (--renumber MAP numbers vertices 0 to n-1)",
      quoted(number), vertex_count_max - 1, is_list ? "" : " of this output");
}

std::string why_not_vertex(std::string_view token, const SnapDialect& dialect) {
  const bool negative = token.starts_with('-');
  const std::string_view digits = token.substr(negative ? 1 : 0);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) {
    if (token.empty()) return "an empty column where a vertex number is expected";
    if (token.starts_with(kByteOrderMark)) {
      return fmt::format("a byte order mark before {}: were two files joined?",
                         quoted(token.substr(kByteOrderMark.size())));
    }
    // 1.0, 1e5, 0x1f, +7, 1_000
    const bool is_number = digits.size() > 1 && (is_digit(digits[0]) || digits[0] == '+') &&
                           digits.find_first_not_of("0123456789.+-_eExXabcdfABCDF") == digits.npos;
    return fmt::format("{} is not a vertex number{}", quoted(token),
                       is_number ? ": digits alone are (--renumber MAP takes any words)" : "");
  }
  if (negative || (dialect.base == 1 && digits.find_first_not_of('0') == std::string_view::npos)) {
    return fmt::format("{} is {}, and vertices count from {}{}", quoted(token),
                       negative ? "negative" : "no vertex", dialect.base,
                       dialect.base == 1 ? " here" : "");
  }
  return vertex_out_of_range(token, dialect.vertices, dialect.vertex_count_max);
}

std::string why_not_weight(std::string_view token, WeightType type) {
  char ignored[8];
  const WeightFit fit = read_weight(token, type, ignored);
  if (fit == WeightFit::kNotNumber) {
    const bool is_wide = type != WeightType::kFloat64 &&
                         read_weight(token, WeightType::kFloat64, ignored) != WeightFit::kNotNumber;
    return fmt::format(
        "{} is not a weight{}", quoted(token),
        is_wide ? fmt::format(" of type {} (a list with --weights float64 holds it)", name_of(type))
                : "");
  }
  std::string holds;
  for (const WeightType other : {WeightType::kInt64, WeightType::kFloat64}) {
    if (holds.empty() && other != type && read_weight(token, other, ignored) == WeightFit::kKept) {
      holds = fmt::format("; a list with --weights {} holds it", name_of(other));
    }
  }
  return fmt::format("{} is not a weight of type {} (--round takes the nearest{})", quoted(token),
                     name_of(type), holds);
}

}  // namespace graphlane::graphfmt
