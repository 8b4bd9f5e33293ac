#include "adapters/python/src/bv_reader.h"

#include <algorithm>
#include <cerrno>
#include <functional>

namespace graphlane::python {
namespace {

// Thrown by the decoder and caught in read(): the bits are no list.
struct Damaged {};

// 0, -1, 1, -2, … for 0, 1, 2, 3, …
int64_t signed_of(uint64_t natural) {
  const auto half = static_cast<int64_t>(natural >> 1);
  return (natural & 1) == 0 ? half : -half - 1;
}

}  // namespace

BvReader::BvReader(const BvFormat& format, std::span<const uint8_t> bits, std::string name)
    : format_(format),
      name_(std::move(name)),
      bits_(bits),
      recent_(std::min<uint64_t>(format.window, format.vertex_count) + 1) {}

uint64_t BvReader::number(BvCode code) {
  const uint64_t number = [&] {
    switch (code) {
      case BvCode::kUnary: return bits_.unary();
      case BvCode::kGamma: return bits_.gamma();
      case BvCode::kDelta: return bits_.delta();
      case BvCode::kZeta: return bits_.zeta(format_.zeta_k);
    }
    throw Damaged{};
  }();
  if (bits_.is_bad()) throw Damaged{};
  return number;
}

void BvReader::add(uint64_t target, List& to) {
  // A vertex below zero is here one above all vertices.
  if (target >= format_.vertex_count) throw Damaged{};
  to.push_back(static_cast<uint32_t>(target));
}

// Returns how many are copied.
uint64_t BvReader::copy_blocks(uint64_t vertex, uint64_t degree) {
  if (format_.window == 0) return 0;
  const uint64_t reference = number(format_.references);
  if (reference == 0) return 0;
  if (reference > format_.window || reference > vertex) throw Damaged{};
  const List& from = list_of(vertex - reference);
  uint64_t at = 0;
  const auto take = [&](uint64_t length, bool copies) {
    if (length > from.size() - at) throw Damaged{};
    if (copies) {
      parts_[0].insert(parts_[0].end(), from.begin() + static_cast<int64_t>(at),
                       from.begin() + static_cast<int64_t>(at + length));
    }
    at += length;
  };
  const uint64_t count = number(format_.block_counts);
  for (uint64_t i = 0; i < count; ++i) take(number(format_.blocks) + (i == 0 ? 0 : 1), i % 2 == 0);
  if (count % 2 == 0) take(from.size() - at, true);
  if (parts_[0].size() > degree) throw Damaged{};
  return parts_[0].size();
}

// Returns how many of the `left` numbers they have.
uint64_t BvReader::add_intervals(uint64_t vertex, uint64_t left) {
  if (format_.interval_length_min == 0 || left == 0) return 0;
  const uint64_t count = number(BvCode::kGamma);
  uint64_t end = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t begin = i == 0
                               ? vertex + static_cast<uint64_t>(signed_of(number(BvCode::kGamma)))
                               : end + number(BvCode::kGamma) + 1;
    const uint64_t length = number(BvCode::kGamma) + format_.interval_length_min;
    if (begin >= format_.vertex_count || length > left - parts_[1].size()) throw Damaged{};
    for (end = begin; end < begin + length; ++end) add(end, parts_[1]);
  }
  return parts_[1].size();
}

void BvReader::add_residuals(uint64_t vertex, uint64_t left) {
  uint64_t last = 0;
  for (uint64_t i = 0; i < left; ++i) {
    const uint64_t told = number(format_.residuals);
    last = i == 0 ? vertex + static_cast<uint64_t>(signed_of(told)) : last + told + 1;
    add(last, parts_[2]);
  }
}

void BvReader::decode(uint64_t vertex) {
  List& list = list_of(vertex);
  list.clear();
  for (List& part : parts_) part.clear();
  const uint64_t degree = number(format_.degrees);
  if (degree > format_.vertex_count) throw Damaged{};
  if (degree == 0) return;
  uint64_t left = degree - copy_blocks(vertex, degree);
  left -= add_intervals(vertex, left);
  add_residuals(vertex, left);
  for (const List& part : parts_) {
    const auto middle = static_cast<int64_t>(list.size());
    list.insert(list.end(), part.begin(), part.end());
    std::inplace_merge(list.begin(), list.begin() + middle, list.end());
  }
  if (std::adjacent_find(list.begin(), list.end(), std::greater_equal<>()) != list.end()) {
    throw Damaged{};
  }
}

Outcome<void> BvReader::read(uint64_t count, Arcs& into) {
  into.sources.clear();
  into.targets.clear();
  uint64_t begin = bits_.position();
  try {
    for (; next_vertex_ < format_.vertex_count && into.targets.size() < count; ++next_vertex_) {
      begin = bits_.position();
      decode(next_vertex_);
      const List& list = list_of(next_vertex_);
      into.sources.insert(into.sources.end(), list.size(), static_cast<uint32_t>(next_vertex_));
      into.targets.insert(into.targets.end(), list.begin(), list.end());
    }
  } catch (const Damaged&) {
    return make_error(EBADMSG, "{}: is damaged at byte {}: no list of vertex {}", name_, begin / 8,
                      next_vertex_);
  }
  return {};
}

}  // namespace graphlane::python
