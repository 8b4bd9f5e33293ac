// Elevator: in which order a device serves those who wait for it.
//
//   waiting, by place    ░   ░░░   ░░ ░      ░ ░░
//                            ▲   ▲ head
//                         └──┴ goes_on_from(): a little behind the head
//
// Upwards, and from the lowest again. Two exceptions:
//
// - Who is a little behind is of the same sweep, and goes first: else he would stay behind, and
//   the head would go back and forth between him and the others. But then it goes up to where
//   it was before it goes back again.
// - Nobody is overtaken for ever. What counts is the work of those who came later, not the time:
//   where many wait, each waits long though nobody overtakes him, and to serve them in the
//   order of arrival then would make the head jump. (Eight threads that read 24 MiB each, eight
//   disks dilated 8 times, 500 ms and then by arrival: 34 seeks of a disk in 40 reads, 0.80 of
//   the ceiling.)
//
// Threads: none; its owner has a lock.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace graphlane {

// As far as we can know it: a file's bytes lie together, most of them in order; which
// file lies where, only its filesystem knows.
struct DevicePlace {
  int fd = -1;
  uint64_t offset = 0;
  auto operator<=>(const DevicePlace&) const = default;
};

class Elevator {
 public:
  // What later ones may do first: what a disk reads in half a second.
  static constexpr uint64_t kOvertakingMax = 96 << 20;

  // How many bytes behind the head somebody may be and go first.
  constexpr explicit Elevator(uint64_t behind_max) : behind_max_(behind_max) {}

  // The lowest place that is next, if somebody waits from there on.
  DevicePlace goes_on_from() const {
    if (head_ < furthest_) return head_;
    return {head_.fd, head_.offset - std::min(head_.offset, behind_max_)};
  }
  // Where the last one ended.
  DevicePlace head() const { return head_; }
  void goes_to(DevicePlace place, uint64_t length_bytes) {
    if (place < head_) {
      const bool a_little = place.fd == head_.fd && head_.offset - place.offset <= behind_max_;
      furthest_ = a_little ? head_ : place;
    }
    head_ = {place.fd, place.offset + length_bytes};
  }

  // Of one that waits from now on: what will have been done when all are through that wait now.
  uint64_t wait(uint64_t length_bytes) {
    waiting_ += work(length_bytes);
    return done_ + waiting_;
  }
  // One that waited goes, or gives up.
  void take(uint64_t length_bytes) {
    waiting_ -= work(length_bytes);
    done_ += work(length_bytes);
  }
  // Whether it is the turn of the one who has waited longest, wherever he is.
  bool is_unfair(uint64_t waited_for) const { return done_ > waited_for + kOvertakingMax; }

 private:
  // A seek takes as long as it takes to read this much.
  static constexpr uint64_t kSeek = 1 << 20;
  static uint64_t work(uint64_t length_bytes) { return std::max(length_bytes, kSeek); }

  const uint64_t behind_max_;
  DevicePlace head_;
  DevicePlace furthest_;  // where it was when it went back
  uint64_t done_ = 0;
  uint64_t waiting_ = 0;
};

}  // namespace graphlane
