// LaneQueue: the I/Os that wait for one device, and which of them goes next.
//
//   waiting, by place   |A A|  |B B|C C C|   |D|
//                              ▲ head: where the last one ended
//   take()              B and C as one batch, then D, then A (elevator.h)
//
// Waiting: what a sweep reads comes from many threads, and not in order. If the next one lies a
// little further than where the last one ended, the piece between them is on its way, and a disk
// that does not wait for it seeks twice (anticipatory scheduling, Iyer and Druschel, SOSP 2001).
// Where it does not come, as somebody reads with gaps, there is ever less waiting.
//
//   waiting              |C C C|            take() now: C, then back for B
//                  ▲ head       B comes     a moment later: B and C
//
// Merging (CSMqGraph §3.3): what lies one behind the other goes to the device in one
// call, whoever asked for it.
//
// Threads: none; the lane's lock is held.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "iomgr/io/elevator.h"
#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {

// What a device gets in one call.
struct LaneBatch {
  LaneIo io;                  // all members' iovecs; its owner is the batch
  LaneIo* members = nullptr;  // chained by `next`, in the order of their places
  std::chrono::steady_clock::time_point begun = {};
  LaneBatch* next = nullptr;  // in a list of free ones

  // Adds a member if it may be in one call with those before. False: not.
  bool append(LaneIo* member);
  bool is_merged() const { return members->next != nullptr; }
};

class LaneQueue {
 public:
  using Clock = std::chrono::steady_clock;

  // How long a device does nothing for a piece that is on its way. 0: not at all.
  explicit LaneQueue(Clock::duration patience) : patience_(patience) {}

  // push() allocates no more than this was called for.
  void reserve(size_t count) { sorted_.reserve(count); }

  bool empty() const { return sorted_.empty(); }

  // Sets io->arrived, unless it has waited before.
  void push(LaneIo* io, Clock::time_point now);

  // Until when the device, free since then, had better do nothing; if that is not later than now,
  // take(). Another push() changes it. Precondition: !empty().
  Clock::time_point waits_until(Clock::time_point free_since);

  // Fills the batch with whose turn it is; it begins now. Precondition: !empty().
  void take(Clock::time_point now, LaneBatch* batch);

 private:
  // What comes to a lane is in smaller pieces than what comes to a gate, and each way back is for one of
  // them. (Eight threads through the mount's page cache, two disks, one run each: 0: 0.44 of the
  // ceiling; 32 MiB: 0.64, 0.66; 96 MiB: 0.34, 0.60.)
  static constexpr uint64_t kBehindMax = 32 << 20;

  // What ends here was part of a sweep, and what begins so little further is of the same one.
  static constexpr uint64_t kSweepMin = 256 << 10;
  static constexpr uint64_t kGapMax = 8 << 20;
  // So many in a row before gaps are left, and before there are no more of them each time. (From the
  // first wait in vain on, GridGraph's PageRank by the mount gained half as much.)
  static constexpr uint32_t kVainWaitsMin = 4;
  static constexpr uint32_t kVainWaitsMax = 10;

  using Place = std::vector<LaneIo*>::iterator;
  Place next_place();
  bool leaves_gap(DevicePlace next) const;
  void learn(bool leaves_gap);
  void forget_arrival(LaneIo* io);

  const Clock::duration patience_;
  Elevator elevator_{kBehindMax};
  uint64_t last_bytes_ = 0;      // of the last batch
  bool waited_ = false;          // after it, for what was missing
  uint32_t vain_waits_ = 0;      // in a row
  uint32_t gaps_to_leave_ = 0;   // before the next wait
  std::vector<LaneIo*> sorted_;  // by file and offset; equal ones by arrival
  LaneIo* oldest_ = nullptr;     // all of them by arrival, linked by older and newer
  LaneIo* newest_ = nullptr;
};

}  // namespace graphlane
