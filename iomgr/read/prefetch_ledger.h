// PrefetchLedger: what was prefetched and has not been read yet, and whether such guesses are worth
// their I/O.
//
//   add()      ██ ██ ██ ██        in the order of the guesses
//   take()        ▓▓ ██ ██        read now: used; the bytes in front of it were skipped
//   expire()         ██ ██        due long ago: unused
//
// After more unused bytes than used ones, guesses pause. The clock counts bytes that were read.
// An item may own a pin (cache.h), which keeps its frame in memory until it leaves the ledger.
//
// Not thread-safe. No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>

#include "iomgr/cache/cache.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

class PrefetchLedger {
 public:
  static constexpr uint32_t kItemsMax = 128;

  struct Item {
    ByteRange range;      // not empty
    uint64_t due = 0;     // on the clock
    uint64_t number = 0;  // of the guess
    Pin pin;              // empty: in flight, or in the page cache
  };
  struct Taken {
    uint32_t items = 0;  // that are read to their ends
    uint64_t bytes = 0;
    uint64_t skipped_bytes = 0;
  };
  struct Expired {
    uint32_t items = 0;
    uint64_t bytes = 0;
  };

  uint64_t clock() const { return clock_; }
  // So many bytes are read now.
  void advance(uint64_t read_bytes) { clock_ += read_bytes; }

  bool is_empty() const { return count_ == 0; }
  bool is_full() const { return count_ == kItemsMax; }
  uint64_t bytes() const;
  // The item that begins there, or null.
  Item* find(uint64_t offset);
  // Cuts off the begin of the range that is in the ledger. Returns whether nothing is left.
  bool cut(ByteRange* range) const;

  // Adds a guess, which is due after so many bytes. The ledger must not be full.
  void add(ByteRange range, uint64_t distance_bytes, Pin pin = {});

  // The range is read now.
  Taken take(ByteRange range);

  // Removes the items that were due more than `patience_bytes` ago, and passes each one's range.
  template <class Visit>
  Expired expire(uint64_t patience_bytes, Visit visit) {
    return expire_if([&](const Item& item) {
      if (clock_ <= item.due + patience_bytes) return false;
      visit(item.range);
      return true;
    });
  }
  // Removes the items that were skipped: more than `late_max` guesses before the last one taken.
  Expired expire_skipped(uint64_t late_max) {
    return expire_if([&](const Item& item) { return item.number + late_max < taken_number_; });
  }
  // Removes the oldest item of a ledger that is not empty.
  Expired expire_first();

  // Decides whether guesses pause, as soon as `enough_bytes` were used or not.
  void judge(uint64_t enough_bytes);
  bool is_paused() const { return clock_ < paused_until_; }

  // Removes all items. Returns their number.
  uint32_t clear();
  // Clears, and forgets the clock and the verdict.
  void reset();

 private:
  static constexpr uint64_t kPauseBytes = uint64_t{512} << 20;

  // Returns what was removed.
  template <class Predicate>
  Expired remove_if(Predicate predicate) {
    Expired removed;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      Item& item = items_[i];
      if (predicate(item)) {
        removed.items += 1;
        removed.bytes += item.range.length_bytes;
        item.pin.release();
        continue;
      }
      if (kept != i) items_[kept] = std::move(item);
      ++kept;
    }
    count_ = kept;
    return removed;
  }
  template <class Predicate>
  Expired expire_if(Predicate predicate) {
    const Expired expired = remove_if(predicate);
    unused_bytes_ += expired.bytes;
    return expired;
  }

  uint64_t clock_ = 0;
  uint64_t paused_until_ = 0;  // on the clock
  uint64_t used_bytes_ = 0;    // since the last verdict
  uint64_t unused_bytes_ = 0;
  uint64_t last_number_ = 0;
  uint64_t taken_number_ = 0;
  uint32_t count_ = 0;
  Item items_[kItemsMax];
};

}  // namespace graphlane
