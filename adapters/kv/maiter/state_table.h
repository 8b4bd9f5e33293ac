// StateTable: v and Δ of each vertex (Maiter's state table without the adjacency lists), and which
// vertices a round takes.
//
// The priority of a vertex is |Δ| of a sum. Of a minimum it is 1 / (1 + Δ) while Δ is below v, else
// 0: the lowest go first.
//
// Threads: select() by one. The engine's threads change v and Δ of different vertices, or through
// atomic_ref.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace graphlane::maiter {

class StateTable {
 public:
  // The arrays are of all vertices, the caller's, and outlive this. `is_sum`: the operator's.
  StateTable(std::span<double> values, std::span<double> deltas, bool is_sum)
      : values_(values), deltas_(deltas), is_sum_(is_sum) {}

  size_t size() const { return values_.size(); }
  double& value(uint64_t v) { return values_[v]; }
  double& delta(uint64_t v) { return deltas_[v]; }

  double priority(uint64_t v) const {
    if (is_sum_) return std::abs(deltas_[v]);
    return deltas_[v] < values_[v] ? 1 / (1 + deltas_[v]) : 0;
  }

  // As priority(), while other threads change Δ by atomic_ref.
  double shared_priority(uint64_t v) const {
    const double delta = std::atomic_ref(deltas_[v]).load(std::memory_order_relaxed);
    if (is_sum_) return std::abs(delta);
    return delta < values_[v] ? 1 / (1 + delta) : 0;
  }

  // The work left in [begin, end): Σ|Δ| of a sum, the number of vertices with a Δ of a minimum.
  double left(uint64_t begin, uint64_t end) const {
    double sum = 0;
    for (uint64_t v = begin; v < end; ++v) {
      sum += is_sum_ ? std::abs(deltas_[v]) : deltas_[v] < values_[v] ? 1 : 0;
    }
    return sum;
  }

  // The vertices of [begin, end) with the highest priority, at most `count_max`, in the order of
  // the table; none at or below `least`.
  void select(uint64_t begin, uint64_t end, uint64_t count_max, double least,
              std::vector<uint32_t>& chosen) const {
    chosen.clear();
    uint32_t lowest = 0;  // list of the last ones that have room
    uint64_t of_lowest = ~uint64_t{0};
    if (count_max < end - begin) {
      std::array<uint64_t, kLists> counts{};
      for (uint64_t v = begin; v < end; ++v) {
        const double p = priority(v);
        if (p > least) ++counts[list_of(p)];
      }
      uint64_t room = count_max;
      for (lowest = kLists - 1; lowest > 0 && counts[lowest] <= room; --lowest) {
        room -= counts[lowest];
      }
      of_lowest = room;
    }
    for (uint64_t v = begin; v < end; ++v) {
      const double p = priority(v);
      if (!(p > least)) continue;
      const uint32_t list = list_of(p);
      if (list < lowest || (list == lowest && of_lowest == 0)) continue;
      of_lowest -= list == lowest;
      chosen.push_back(static_cast<uint32_t>(v));
    }
  }

 private:
  // Eight lists to a doubling.
  static constexpr uint32_t kLists = 2048;
  static uint32_t list_of(double priority) {
    return std::min(std::bit_cast<uint32_t>(static_cast<float>(priority)) >> 20, kLists - 1);
  }

  const std::span<double> values_;
  const std::span<double> deltas_;
  const bool is_sum_;
};

}  // namespace graphlane::maiter
