// ReadTrail: which pages a sweep will not read again, of those that were read through a page cache.
//
//        gone                kept            read now
//   ░░░░░░░░░░░░░░░░░░███████████████████████|▓▓▓        in the order of reading, over all files
//
// The next sweep of files that do not fit in memory hits no page anyway. So the pages read longest
// ago go first. A read that belongs to no sweep leaves its pages where they are.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "iomgr/volume/stub/stripe.h"

namespace graphlane::fuse {

class ReadTrail {
 public:
  struct Stretch {
    uint64_t file;  // its inode in the mount
    ByteRange range;
    bool sweeps = false;   // it continues another recent stretch
    uint64_t gone_at = 0;  // the clock when it was dropped
  };

  // Adds a read, which is not empty. A read of a range that was dropped recently shows that more
  // must be kept.
  void add(uint64_t file, ByteRange range);
  // The oldest stretch of a sweep, if at least `kept_bytes` were read after it, or more if that has
  // proved to be too little. The caller drops it. Stretches that are not of a sweep are forgotten.
  std::optional<Stretch> take(uint64_t kept_bytes);
  // As take(), of this file and regardless of later reads, because the file was closed.
  std::optional<Stretch> take_of(uint64_t file);
  // Forgets all stretches of this file, because it has a writer.
  void forget(uint64_t file);

 private:
  // Requests of one read-ahead window may arrive out of order by this much.
  static constexpr uint64_t kNear = uint64_t{4} << 20;
  static constexpr uint64_t kStretchMax = uint64_t{4} << 20;  // dropped at a time
  // recent stretches that a read may continue
  static constexpr size_t kStreamsMax = 32;
  static constexpr size_t kStretchesMax = 4096;
  static constexpr uint64_t kSweepMin = uint64_t{1} << 20;
  static constexpr uint64_t kKeptGrowth = 4;  // times kept_bytes, at most

  void learn(uint64_t file, ByteRange range);
  void forget_first();

  std::deque<Stretch> stretches_;
  uint64_t bytes_ = 0;        // in stretches_
  uint64_t clock_ = 0;        // bytes read so far
  uint64_t kept_bytes_ = 0;   // of the last take()
  uint64_t extra_bytes_ = 0;  // learned: to keep beyond kept_bytes_
  std::array<Stretch, kStreamsMax> gone_{};
  size_t gone_count_ = 0;
};

}  // namespace graphlane::fuse
