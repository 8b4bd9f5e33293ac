// ActiveSet: the vertices that an iteration runs, and those that the next one will.
//
// A bit for every vertex. While few are active, each worker also lists those that it activated.
// Then the next iteration need not look at all the bits, and clears the last one's one by one.
//
// Threads: activate() by any worker, each with its own number; is_active() by any; the rest by one
// thread while no worker runs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace graphlane::semiext {

class ActiveSet {
 public:
  static constexpr uint64_t kWordBits = 64;
  // The most vertices that a worker lists.
  static constexpr size_t kListedMax = 1024;

  ActiveSet(uint64_t vertex_count, unsigned worker_count)
      : vertex_count_(vertex_count),
        word_count_((vertex_count + kWordBits - 1) / kWordBits),
        now_(new std::atomic<uint64_t>[word_count_]()),
        next_(new std::atomic<uint64_t>[word_count_]()),
        workers_(worker_count) {}

  // Activates it for the next iteration.
  void activate(uint32_t vertex, unsigned worker) {
    std::atomic<uint64_t>& word = next_[vertex / kWordBits];
    const uint64_t bit = uint64_t{1} << vertex % kWordBits;
    // Relaxed: the end of the iteration orders it.
    if ((word.load(std::memory_order_relaxed) & bit) != 0) return;
    if ((word.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
    Worker& own = workers_[worker];
    if (own.count++ < kListedMax) own.listed.push_back(vertex);
  }
  void activate_all() { next_is_all_ = true; }

  // Whether it is active in this iteration.
  bool is_active(uint32_t vertex) const {
    return (now_[vertex / kWordBits].load(std::memory_order_relaxed) >> vertex % kWordBits & 1) !=
           0;
  }
  bool is_all() const { return now_is_all_; }
  uint64_t count() const { return count_; }
  // Whether list() is all of them, ascending.
  bool is_listed() const { return is_listed_; }
  std::span<const uint32_t> list() const { return list_; }
  uint64_t word(uint64_t index) const { return now_[index].load(std::memory_order_relaxed); }
  uint64_t word_count() const { return word_count_; }

  // Makes the activated vertices the active ones.
  void advance() {
    clear_now();
    std::swap(now_, next_);
    now_is_all_ = next_is_all_;
    next_is_all_ = false;
    count_ = 0;
    is_listed_ = true;
    for (Worker& worker : workers_) {
      count_ += worker.count;
      is_listed_ = is_listed_ && worker.count <= kListedMax;
    }
    for (Worker& worker : workers_) {
      if (is_listed_) list_.insert(list_.end(), worker.listed.begin(), worker.listed.end());
      worker.listed.clear();
      worker.count = 0;
    }
    if (now_is_all_) {
      count_ = vertex_count_;
      is_listed_ = false;
      list_.clear();
      for (uint64_t i = 0; i < word_count_; ++i) {
        const uint64_t rest = vertex_count_ - i * kWordBits;
        now_[i].store(rest >= kWordBits ? ~uint64_t{0} : (uint64_t{1} << rest) - 1,
                      std::memory_order_relaxed);
      }
    }
    std::sort(list_.begin(), list_.end());
  }

 private:
  struct alignas(64) Worker {
    uint64_t count = 0;
    std::vector<uint32_t> listed;
  };

  void clear_now() {
    if (is_listed_) {
      for (const uint32_t vertex : list_) {
        now_[vertex / kWordBits].store(0, std::memory_order_relaxed);
      }
    } else {
      for (uint64_t i = 0; i < word_count_; ++i) now_[i].store(0, std::memory_order_relaxed);
    }
    list_.clear();
  }

  const uint64_t vertex_count_;
  const uint64_t word_count_;
  std::unique_ptr<std::atomic<uint64_t>[]> now_;
  std::unique_ptr<std::atomic<uint64_t>[]> next_;
  std::vector<Worker> workers_;
  std::vector<uint32_t> list_;
  uint64_t count_ = 0;
  bool is_listed_ = true;
  bool now_is_all_ = false;
  bool next_is_all_ = false;
};

}  // namespace graphlane::semiext
