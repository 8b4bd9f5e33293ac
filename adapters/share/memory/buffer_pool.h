// BufferPool: units in memory, within a budget of bytes.
//
//   budget  |■■■■ read by jobs |▒▒ loading |░░░░░░ spare |      free |
//
// A buffer becomes spare with its last reader. It stays while there is room, because the next sweep
// wants it too (eviction.h). So the begin of a graph larger than the budget stays, where LRU would
// keep nothing of use. The rest is read without gaps, at each of which a disk would seek.
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
  Fd memory;  // none: loading
  uint64_t size_bytes = 0;
  uint64_t left_in = 0;  // of a spare one: the round of its last reader
};

class BufferPool {
 public:
  // At most `count_max` buffers, one descriptor each.
  BufferPool(uint32_t unit_count, uint64_t budget_bytes, size_t count_max)
      : budget_bytes_(budget_bytes), count_max_(count_max), spare_(unit_count) {}

  // The filled buffer of a unit; null: there is none.
  const Buffer* find(uint32_t unit) const;
  bool is_filling(uint32_t unit) const;
  const std::map<uint32_t, Buffer>& all() const { return buffers_; }

  // These units have no reader in this round (GlobalTable::round()): their buffers are spare.
  void set_spare(const PartitionSet& unused, uint64_t round);

  // Takes effect with the next make_room().
  void set_budget(uint64_t bytes) { budget_bytes_ = bytes; }

  // Buffers that do not count against the budget.
  struct Ignored {
    uint64_t bytes = 0;
    size_t count = 0;
  };
  // Whether `count` more buffers of `size_bytes` in all fit, after the release of spare ones, which
  // are appended to `released`.
  bool make_room(uint64_t size_bytes, size_t count, const Ignored& ignored,
                 std::vector<uint32_t>& released);

  // A loading buffer counts from reserve() on; fill() or release() ends that state.
  void reserve(uint32_t unit, uint64_t size_bytes);
  void fill(uint32_t unit, Fd memory);
  void release(uint32_t unit);

  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t used_bytes_max() const { return used_bytes_max_; }
  // The maximum of this round and the one before.
  uint64_t used_bytes_lately() const { return std::max(used_bytes_now_, used_bytes_before_); }

 private:
  uint64_t budget_bytes_;
  const size_t count_max_;
  std::map<uint32_t, Buffer> buffers_;
  PartitionSet spare_;  // units; some have no buffer
  uint64_t round_ = 0;
  uint64_t used_bytes_ = 0;
  uint64_t used_bytes_max_ = 0;
  uint64_t used_bytes_now_ = 0;     // the maximum of this round
  uint64_t used_bytes_before_ = 0;  // of the round before
};

}  // namespace graphlane::share
