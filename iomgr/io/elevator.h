// Elevator: the order in which a device serves its waiters.
//
//   waiting, by place    ░   ░░░   ░░ ░      ░ ░░
//                            ▲   ▲ head
//                         └──┴ next_from(): a little behind the head
//
// Upwards, then from the lowest place again. Two exceptions:
//
// - A waiter that is a little behind belongs to the same sweep, and goes first. Otherwise it would
//   stay behind, and the head would go back and forth. After that the head goes up to where it
//   was before it goes back again.
//
// - No waiter is overtaken for ever. The limit counts the work of later waiters, not the time.
//   Where many wait, each waits long without being overtaken. Serving them by arrival would then
//   make the head jump.
//
// Threads: not thread-safe; its owner has a lock.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace graphlane {

// A place on the device, as far as it is known: a file's bytes lie together, mostly in order. Only
// the filesystem knows the order of files.
struct DevicePlace {
  int fd = -1;
  uint64_t offset = 0;
  auto operator<=>(const DevicePlace&) const = default;
};

class Elevator {
 public:
  // The work that may overtake a waiter: what a disk reads in half a second.
  static constexpr uint64_t kOvertakingMax = 96 << 20;

  // `behind_max`: how many bytes behind the head a waiter may be and go first.
  constexpr explicit Elevator(uint64_t behind_max) : behind_max_(behind_max) {}

  // The next waiter is the lowest one from this place on, if there is one.
  DevicePlace next_from() const {
    if (head_ < furthest_) return head_;
    return {head_.fd, head_.offset - std::min(head_.offset, behind_max_)};
  }
  // Where the last I/O ended.
  DevicePlace head() const { return head_; }
  void move_to(DevicePlace place, uint64_t length_bytes) {
    if (place < head_) {
      const bool a_little = place.fd == head_.fd && head_.offset - place.offset <= behind_max_;
      furthest_ = a_little ? head_ : place;
    }
    head_ = {place.fd, place.offset + length_bytes};
  }

  // A waiter arrives. Returns the work that will be done when all present waiters are served.
  uint64_t wait(uint64_t length_bytes) {
    waiting_ += work(length_bytes);
    return done_ + waiting_;
  }
  // A waiter goes, or gives up.
  void take(uint64_t length_bytes) {
    waiting_ -= work(length_bytes);
    done_ += work(length_bytes);
  }
  // Whether the longest waiter must go next, wherever its place is.
  bool is_unfair(uint64_t waited_for) const { return done_ > waited_for + kOvertakingMax; }

 private:
  // A seek costs as much time as reading this much.
  static constexpr uint64_t kSeek = 1 << 20;
  static uint64_t work(uint64_t length_bytes) { return std::max(length_bytes, kSeek); }

  const uint64_t behind_max_;
  DevicePlace head_;
  DevicePlace furthest_;  // the head before it went back
  uint64_t done_ = 0;
  uint64_t waiting_ = 0;
};

}  // namespace graphlane
