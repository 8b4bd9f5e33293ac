// BufferPool: the units in memory, within a budget of bytes.
//
//   budget  |■■■■ read by jobs |▒▒ being read in |░░░░░░ spare |      room |
//
// A buffer that its last reader has left is spare: it stays while there is room, as the next
// sweep wants it too (eviction.h). So of a graph larger than the budget its begin stays, where LRU
// would keep nothing that is of use, and the rest leaves no gaps, at each of which a disk would seek.
//
// Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "adapters/share/schedule/partition_set.h"
#include "iomgr/base/fd.h"

namespace graphlane::share {

struct Buffer {
  Fd memory;  // none: it is being filled
  uint64_t size_bytes = 0;
  uint64_t left_in = 0;  // of a spare one: the round in which its last reader left it
};

class BufferPool {
 public:
  // `count_max` buffers at most, each a descriptor.
  BufferPool(uint32_t unit_count, uint64_t budget_bytes, size_t count_max)
      : budget_bytes_(budget_bytes), count_max_(count_max), spare_(unit_count) {}

  // The filled buffer of a unit; null: there is none.
  const Buffer* find(uint32_t unit) const;
  bool is_filling(uint32_t unit) const;
  const std::map<uint32_t, Buffer>& all() const { return buffers_; }

  // These are of no use to anybody now, in this round of the graph's (GlobalTable::round()).
  void set_spare(const PartitionSet& unused, uint64_t round);

  // What is more than that is to be released by make_room().
  void set_budget(uint64_t bytes) { budget_bytes_ = bytes; }

  // Of the buffers that are used: what does not count.
  struct Ignored {
    uint64_t bytes = 0;
    size_t count = 0;
  };
  // Whether there is room for `count` more of so many bytes together, once what is appended to
  // `released` has gone.
  bool make_room(uint64_t size_bytes, size_t count, const Ignored& ignored,
                 std::vector<uint32_t>& released);

  // A buffer that is being filled takes its room; then it is filled, or is not.
  void reserve(uint32_t unit, uint64_t size_bytes);
  void fill(uint32_t unit, Fd memory);
  void release(uint32_t unit);

  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t used_bytes_max() const { return used_bytes_max_; }
  // The most in this round and the one before.
  uint64_t used_bytes_lately() const { return std::max(used_bytes_now_, used_bytes_before_); }

 private:
  uint64_t budget_bytes_;
  const size_t count_max_;
  std::map<uint32_t, Buffer> buffers_;
  PartitionSet spare_;  // also such as have no buffer
  uint64_t round_ = 0;
  uint64_t used_bytes_ = 0;
  uint64_t used_bytes_max_ = 0;
  uint64_t used_bytes_now_ = 0;     // the most in this round
  uint64_t used_bytes_before_ = 0;  // and in the one before
};

}  // namespace graphlane::share
