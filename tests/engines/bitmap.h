// Bitmap: one bit a vertex; set() from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "tests/engines/vertex_file.h"

namespace engines {

class Bitmap {
 public:
  explicit Bitmap(int64_t vertex_count) : words_(static_cast<size_t>(vertex_count + 63) / 64) {}

  // Relaxed throughout: a bit orders no other memory until the threads of the pass are joined.
  bool get(int64_t v) const {
    return (words_[index(v)].load(std::memory_order_relaxed) & mask(v)) != 0;
  }
  // True if this call set the bit.
  bool set(int64_t v) {
    return (words_[index(v)].fetch_or(mask(v), std::memory_order_relaxed) & mask(v)) == 0;
  }
  void assign(bool value) {
    for (auto& word : words_) word.store(value ? ~uint64_t{0} : 0, std::memory_order_relaxed);
  }
  void merge(const Bitmap& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i].load();
  }
  bool any(VertexRange range) const {
    for (int64_t v = range.begin; v < range.end;) {
      if (v % 64 == 0 && words_[index(v)].load(std::memory_order_relaxed) == 0) {
        v += 64;
      } else if (get(v)) {
        return true;
      } else {
        ++v;
      }
    }
    return false;
  }

 private:
  static size_t index(int64_t v) { return static_cast<size_t>(v) / 64; }
  static uint64_t mask(int64_t v) { return uint64_t{1} << (v % 64); }

  std::vector<std::atomic<uint64_t>> words_;
};

}  // namespace engines
