// Overtaking: how much of what came later a device may do before what came first.
//
// An elevator serves by place, and somebody whom others overtake must not wait for ever. What
// counts is their work, not the time: where many wait, each waits long though nobody
// overtakes him, and to serve them in the order of arrival then would make a disk's head go
// back and forth between them. (Eight threads that read 24 MiB each, eight disks dilated 8
// times, 500 ms and then by arrival: 34 seeks of a disk in 40 reads, 0.80 of the ceiling.)
//
//   wait()      ──► what will have been done when all who wait now, and he, are through
//   take(bytes)     somebody goes
//   is_unfair()     of the one who has waited longest: more than that, and kMost, was done
//
// Threads: none; its owner has a lock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace graphlane {

class Overtaking {
 public:
  // What a disk reads in half a second.
  static constexpr uint64_t kMost = 96 << 20;

  // Of an I/O that waits from now on.
  uint64_t wait(uint64_t bytes) {
    waiting_ += work(bytes);
    return done_ + waiting_;
  }
  // One that waited goes, or gives up.
  void take(uint64_t bytes) {
    waiting_ -= work(bytes);
    done_ += work(bytes);
  }
  bool is_unfair(uint64_t waited_for) const { return done_ > waited_for + kMost; }

 private:
  // A seek takes as long as it takes to read this much.
  static constexpr uint64_t kSeek = 1 << 20;
  static uint64_t work(uint64_t bytes) { return std::max(bytes, kSeek); }

  uint64_t done_ = 0;
  uint64_t waiting_ = 0;
};

}  // namespace graphlane
