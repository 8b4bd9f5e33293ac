// Bitmap: a set of vertices. set_bit() is safe from any thread at any time.
#ifndef GRAPHLANE_GRIDGRAPH_BITMAP_HPP
#define GRAPHLANE_GRIDGRAPH_BITMAP_HPP

#include <stddef.h>

#include <algorithm>

#include "core/atomic.hpp"

#define WORD_OFFSET(i) ((i) >> 6)
#define BIT_OFFSET(i) ((i) & 0x3f)

class Bitmap {
 public:
  Bitmap() : size(0), data(nullptr) {}
  Bitmap(size_t bit_count) : size(0), data(nullptr) { init(bit_count); }
  Bitmap(const Bitmap&) = delete;
  Bitmap& operator=(const Bitmap&) = delete;
  ~Bitmap() { delete[] data; }

  void init(size_t bit_count) {
    delete[] data;
    size = bit_count;
    data = new unsigned long[size / 64 + 1];
    clear();
  }
  void clear() { std::fill(data, data + word_count(), 0ul); }
  // Sets all bits; bits behind the last one stay clear.
  void fill() {
    std::fill(data, data + word_count(), ~0ul);
    if (data != nullptr) data[size / 64] = (1ul << size % 64) - 1;
  }
  unsigned long get_bit(size_t i) const {
    return __atomic_load_n(data + i / 64, __ATOMIC_RELAXED) & (1ul << i % 64);
  }
  void set_bit(size_t i) {
    const unsigned long bit = 1ul << i % 64;
    if (graphlane_gridgraph::is_one_writer()) data[i / 64] |= bit;
    else __atomic_fetch_or(data + i / 64, bit, __ATOMIC_RELAXED);
  }

  // Whether any of [begin, end) is set.
  bool any(size_t begin, size_t end) const {
    while (begin < end) {
      const size_t count = std::min(64 - begin % 64, end - begin);
      const unsigned long mask = (count == 64 ? ~0ul : (1ul << count) - 1) << begin % 64;
      if ((data[begin / 64] & mask) != 0) return true;
      begin += count;
    }
    return false;
  }

  size_t size;
  unsigned long* data;

 private:
  // One word more than needed, as in GridGraph: programs may touch the word behind a multiple of 64.
  size_t word_count() const { return data == nullptr ? 0 : size / 64 + 1; }
};

#endif
