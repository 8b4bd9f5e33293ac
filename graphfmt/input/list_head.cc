#include "graphfmt/input/list_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "graphfmt/input/weights.h"

namespace graphlane::graphfmt {
namespace {

constexpr uint64_t kEdgesLookedAt = 1024;
// In shorter lists an edge often equals such a count by chance.
constexpr uint64_t kOthersToJudge = 3;

double weight_at(const char* at, WeightType type) {
  double weight = 0;
  convert_weight(at, type, reinterpret_cast<char*>(&weight), WeightType::kFloat64);
  return weight;
}

std::optional<uint64_t> as_number(std::string_view name) {
  uint64_t number = 0;
  const auto [behind, status] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (status != std::errc{} || behind != name.data() + name.size()) return std::nullopt;
  return number;
}

}  // namespace

void ListHead::look_at(const EdgeBatch& batch) {
  std::unordered_set<uint32_t> different;
  const char* at = batch.records.data();
  const uint64_t looked_at = std::min<uint64_t>(batch.edge_count, kEdgesLookedAt + 1);
  for (uint64_t i = 0; i < batch.edge_count; ++i, at += batch.edge_bytes()) {
    Edge edge;
    std::memcpy(&edge, at, sizeof edge);
    if (i == 0) {
      source_ = edge.source;
      target_ = edge.target;
      if (batch.weighted) weight_ = weight_at(at + sizeof edge, batch.weight_type);
      continue;
    }
    if (i == 1) second_ = edge;
    others_.max = std::max<uint64_t>({others_.max, edge.source, edge.target});
    others_.min = std::min<uint64_t>({others_.min, edge.source, edge.target});
    if (i < looked_at) different.insert({edge.source, edge.target});
  }
  others_.edge_count = looked_at - std::min<uint64_t>(looked_at, 1);
  others_.vertex_count = different.size();
}

void ListHead::look_at_names(const char* names, size_t names_bytes, bool weighted,
                             WeightType weight_type) {
  std::unordered_set<std::string_view> different;
  const char* const end = names + names_bytes;
  for (uint64_t i = 0; names < end && i <= kEdgesLookedAt; ++i) {
    for (std::optional<uint64_t>* const first : {&source_, &target_}) {
      uint32_t length;
      std::memcpy(&length, names, sizeof length);
      const std::string_view name(names + sizeof length, length);
      names += sizeof length + length;
      const std::optional<uint64_t> number = as_number(name);
      if (i == 0) {
        *first = number;
        continue;
      }
      different.insert(name);
      others_.max = std::max(others_.max, number.value_or(0));
      others_.min = std::min(others_.min, number.value_or(0));
    }
    if (weighted) {
      if (i == 0) weight_ = weight_at(names, weight_type);
      names += weight_size_bytes(weight_type);
    }
    others_.edge_count = i;
  }
  others_.vertex_count = different.size();
}

void ListHead::add_later(uint32_t vertex_max) {
  others_.max = std::max<uint64_t>(others_.max, vertex_max);
}

// Whether there are so many vertices in the other edges. Vertices that count from 0, or from 1, may
// lack edges.
bool ListHead::fits_vertices(uint64_t number, uint64_t other_edges) const {
  if (other_edges == others_.edge_count && number == others_.vertex_count) return true;
  return number > others_.max || (number == others_.max && others_.min > 0);
}

// Whether there are exactly so many, as far as the largest of them tells.
bool ListHead::counts_vertices(uint64_t number, uint64_t other_edges) const {
  if (other_edges == others_.edge_count && number == others_.vertex_count) return true;
  return number == others_.max + 1 || (number == others_.max && others_.min == 1);
}

bool ListHead::counts_entries(uint64_t other_edges) const {
  const uint64_t source = *source_, target = *target_;
  const bool source_fits = fits_vertices(source, other_edges);
  if (target == other_edges) {
    // In a long list such an edge is rare, whatever its vertices are. But the closing edge of a
    // cycle may come first.
    const bool is_long = other_edges > others_.edge_count && source > 1;
    if (source_fits || is_long) return true;
  }
  const bool is_half =
      target > 0 && target == other_edges - target;  // each edge is there both ways
  if (is_half && source_fits) return true;
  if (!weight_ && source == other_edges && counts_vertices(target, other_edges)) return true;
  const bool target_fits = fits_vertices(target, other_edges);
  return weight_ && source_fits && target_fits && *weight_ == static_cast<double>(other_edges);
}

ListHead::Verdict ListHead::judge(uint64_t edge_count) const {
  if (!source_ || !target_ || edge_count < 2 || others_.edge_count == 0) return Verdict::kEdge;
  const uint64_t other_edges = edge_count - 1;
  if (counts_entries(other_edges)) {
    return other_edges < kOthersToJudge ? Verdict::kDoubtful : Verdict::kHead;
  }
  // 'VERTICES EDGES' of a file that is not complete, or 'ROWS COLUMNS' without the third column.
  const bool is_above = *target_ > others_.max || (*target_ == *source_ && *source_ > 1);
  return counts_vertices(*source_, other_edges) && is_above && other_edges >= kOthersToJudge
             ? Verdict::kDoubtful
             : Verdict::kEdge;
}

bool ListHead::is_wide_head(uint64_t edge_count) const {
  if (!second_ || source_ == 0 || target_ != 0 || edge_count < kOthersToJudge + 2) return false;
  const bool counts_edges = source_ == edge_count - 1 && *source_ > others_.max;
  return counts_edges || (second_->target == 0 && second_->source == edge_count - 2);
}

std::string ListHead::text() const {
  return fmt::format("{} {}", source_.value_or(0), target_.value_or(0));
}

}  // namespace graphlane::graphfmt
