// Frontier: the vertices that are active in this iteration, and those that the next one will have.
//
//   activate(v) ─▶ next ──begin_interval(i): those of the interval──▶ now: is_active(v), for_each_active(i)
//
// Threads: activate() and is_active() by any worker; the rest by one thread while no worker runs.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "graphfmt/dual/dual_geometry.h"

namespace graphlane::hybrid {

class Frontier {
 public:
  explicit Frontier(const graphfmt::DualGeometry& geometry)
      : geometry_(geometry),
        words_(geometry.vertex_count() / kBits + 1),
        now_(new std::atomic<uint64_t>[words_]()),
        next_(new std::atomic<uint64_t>[words_]()),
        has_next_(new std::atomic<bool>[geometry.partitions()]()),
        counts_(geometry.partitions()) {}

  // For the next iteration; or for this one, if its interval has not begun.
  void activate(uint64_t vertex) { activate(vertex, geometry_.interval_of(vertex)); }
  void activate(uint64_t vertex, uint32_t interval) {
    std::atomic<uint64_t>& word = next_[vertex / kBits];
    const uint64_t bit = uint64_t{1} << vertex % kBits;
    // Relaxed: the end of a sweep orders it.
    if ((word.load(std::memory_order_relaxed) & bit) != 0) return;
    word.fetch_or(bit, std::memory_order_relaxed);
    if (!has_next_[interval].load(std::memory_order_relaxed)) {
      has_next_[interval].store(true, std::memory_order_relaxed);
    }
  }
  void activate_all() {
    for (uint32_t i = 0; i < geometry_.partitions(); ++i) {
      for_words(i, [&](uint64_t word, uint64_t mask) {
        next_[word].fetch_or(mask, std::memory_order_relaxed);
      });
      has_next_[i].store(geometry_.size(i) > 0, std::memory_order_relaxed);
    }
  }

  bool is_active(uint64_t vertex) const {
    return (now_[vertex / kBits].load(std::memory_order_relaxed) >> vertex % kBits & 1) != 0;
  }
  // Whether any vertex waits for an iteration.
  bool has_next() const {
    for (uint32_t i = 0; i < geometry_.partitions(); ++i) {
      if (has_next_[i].load(std::memory_order_relaxed)) return true;
    }
    return false;
  }

  // Makes the activated vertices of the interval the active ones, and returns how many there are.
  uint64_t begin_interval(uint32_t interval) {
    const bool had = counts_[interval] > 0;
    const bool has = has_next_[interval].exchange(false, std::memory_order_relaxed);
    if (!had && !has) return 0;
    uint64_t count = 0;
    for_words(interval, [&](uint64_t word, uint64_t mask) {
      const uint64_t bits = next_[word].load(std::memory_order_relaxed) & mask;
      if (bits != 0) next_[word].fetch_and(~mask, std::memory_order_relaxed);
      const uint64_t others = now_[word].load(std::memory_order_relaxed) & ~mask;
      now_[word].store(others | bits, std::memory_order_relaxed);
      count += static_cast<uint64_t>(std::popcount(bits));
    });
    return counts_[interval] = count;
  }
  uint64_t count(uint32_t interval) const { return counts_[interval]; }

  // visit(v) for each active vertex of the interval, ascending, v from the interval's begin on.
  // Ends when it returns false.
  template <class Visit>
  void for_each_active(uint32_t interval, const Visit& visit) const {
    const uint64_t first = geometry_.first(interval);
    bool goes_on = true;
    for_words(interval, [&](uint64_t word, uint64_t mask) {
      if (!goes_on) return;
      for (uint64_t bits = now_[word].load(std::memory_order_relaxed) & mask; bits != 0 && goes_on;
           bits &= bits - 1) {
        goes_on = visit(static_cast<uint32_t>(
            word * kBits + static_cast<unsigned>(std::countr_zero(bits)) - first));
      }
    });
  }

 private:
  static constexpr uint64_t kBits = 64;

  // each(word, mask) for the words of an interval: the first and the last may be shared with
  // others.
  template <class Each>
  void for_words(uint32_t interval, const Each& each) const {
    const uint64_t first = geometry_.first(interval), end = geometry_.first(interval + 1);
    if (first == end) return;
    for (uint64_t word = first / kBits; word * kBits < end; ++word) {
      uint64_t mask = ~uint64_t{0};
      if (word == first / kBits) mask &= ~uint64_t{0} << first % kBits;
      if (end - word * kBits < kBits) mask &= (uint64_t{1} << (end - word * kBits)) - 1;
      each(word, mask);
    }
  }

  const graphfmt::DualGeometry geometry_;
  const uint64_t words_;
  std::unique_ptr<std::atomic<uint64_t>[]> now_;
  std::unique_ptr<std::atomic<uint64_t>[]> next_;
  std::unique_ptr<std::atomic<bool>[]> has_next_;
  std::vector<uint64_t> counts_;
};

}  // namespace graphlane::hybrid
