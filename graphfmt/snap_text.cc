#include "graphfmt/snap_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace graphlane {
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

// The number at `at`, which moves behind it; false if no number below `limit`
// with a blank or the end behind it stands there.
bool parse_vertex(const char*& at, const char* end, uint64_t limit, uint32_t& vertex) {
  uint64_t number = 0;
  const char* digit = at;
  // Leading zeros may make a number long, not large; above the limit it only
  // has to stay there.
  for (; digit < end && is_digit(*digit); ++digit) {
    number = std::min<uint64_t>(number * 10 + static_cast<unsigned>(*digit - '0'), uint64_t{1} << 40);
  }
  if (digit == at || number >= limit || (digit < end && !is_blank(*digit))) return false;
  at = digit;
  vertex = static_cast<uint32_t>(number);
  return true;
}

bool parse_weight(const char*& at, const char* end, float& weight) {
  const auto [behind, status] = std::from_chars(at, end, weight);
  if (status != std::errc{} || !std::isfinite(weight) || (behind < end && !is_blank(*behind))) {
    return false;
  }
  at = behind;
  return true;
}

std::string why_not_vertex(std::string_view token, uint64_t vertices) {
  const bool negative = token.starts_with('-');
  const std::string_view digits = token.substr(negative ? 1 : 0);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) {
    return fmt::format("{} is not a vertex number", quoted(token));
  }
  if (negative) return fmt::format("{} is negative, and vertices count from 0", quoted(token));
  return vertex_out_of_range(token, vertices);
}

// The slow look at a line that the fast one refused.
std::string why_not_edge(const char* at, const char* end, const SnapDialect& dialect) {
  const std::string_view line(at, static_cast<size_t>(end - at));
  const unsigned expected = dialect.weighted ? 3 : 2;
  const unsigned columns = column_count(at, end);
  const uint64_t limit = dialect.vertices == 0 ? kVertexCountMax : dialect.vertices;
  for (unsigned column = 0; column < std::min(columns, 2u); ++column) {
    at = skip_blanks(at, end);
    uint32_t vertex;
    if (!parse_vertex(at, end, limit, vertex)) {
      return why_not_vertex(token_at(at, end), dialect.vertices);
    }
  }
  if (columns != expected) {
    return fmt::format("{} column{} where {} are expected: {}", columns, columns == 1 ? "" : "s",
                       expected, quoted(line));
  }
  return fmt::format("{} is not a weight", quoted(token_at(skip_blanks(at, end), end)));
}

// One line that holds an edge; false if it does not.
bool parse_edge(const char* at, const char* end, bool weighted, uint64_t limit, WeightedEdge& edge) {
  if (!parse_vertex(at, end, limit, edge.source)) return false;
  at = skip_blanks(at, end);
  if (!parse_vertex(at, end, limit, edge.target)) return false;
  at = skip_blanks(at, end);
  if (weighted) {
    if (!parse_weight(at, end, edge.weight)) return false;
    at = skip_blanks(at, end);
  }
  return at == end;
}

}  // namespace

SnapParsed parse_snap(std::string_view text, const SnapDialect& dialect, char* records) {
  const uint64_t limit = dialect.vertices == 0 ? kVertexCountMax : dialect.vertices;
  const size_t edge_bytes = edge_size_bytes(dialect.weighted);
  SnapParsed parsed;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const char* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
    const char* const next = newline != nullptr ? newline + 1 : end;
    const char* line_end = newline != nullptr ? newline : end;
    if (line_end > at && line_end[-1] == '\r') --line_end;
    at = skip_blanks(at, line_end);
    if (at < line_end && *at != '#' && *at != '%') {
      WeightedEdge edge{};
      if (!parse_edge(at, line_end, dialect.weighted, limit, edge)) {
        parsed.issue = SnapIssue{parsed.line_count, why_not_edge(at, line_end, dialect)};
        return parsed;
      }
      std::memcpy(records, &edge, edge_bytes);
      records += edge_bytes;
      ++parsed.edge_count;
      parsed.vertex_max = std::max({parsed.vertex_max, edge.source, edge.target});
    }
    parsed.line_count += newline != nullptr;
    at = next;
  }
  return parsed;
}

char* format_snap(const EdgeBatch& batch, char* text) {
  const size_t edge_bytes = edge_size_bytes(batch.weighted);
  const char* record = batch.records.data();
  for (size_t i = 0; i < batch.edge_count; ++i, record += edge_bytes) {
    WeightedEdge edge{};
    std::memcpy(&edge, record, edge_bytes);
    char* const end = text + snap_line_bytes_max(batch.weighted);
    text = std::to_chars(text, end, edge.source).ptr;
    *text++ = '\t';
    text = std::to_chars(text, end, edge.target).ptr;
    if (batch.weighted) {
      *text++ = '\t';
      text = std::to_chars(text, end, edge.weight).ptr;
    }
    *text++ = '\n';
  }
  return text;
}

std::string quoted(std::string_view token) {
  std::string text = "'";
  for (const char c : token.substr(0, kQuoteMax)) {
    text += c == '\t' ? ' ' : c >= 0x20 && c < 0x7f ? c : '?';
  }
  return text + (token.size() > kQuoteMax ? "…'" : "'");
}

std::string vertex_out_of_range(std::string_view number, uint64_t vertices) {
  if (vertices == 0) {
    return fmt::format("{} is above {}, the largest vertex number", quoted(number), kVertexMax);
  }
  return fmt::format("{} is not below the vertex count, {}", quoted(number), vertices);
}

}  // namespace graphlane
