// LaneQueue: the I/Os that wait for one device, and which of them goes next.
//
//   waiting, by place   |A A|  |B B|C C C|   |D|
//                              ▲ head: where the last one ended
//
//   take()              B and C as one batch, then D, then A (elevator.h)
//
// Waiting: many threads read a sweep, out of order. If the next I/O begins a little beyond the
// head, the piece between them is on its way, and a disk that does not wait for it seeks twice
// (anticipatory scheduling, Iyer and Druschel, SOSP 2001). After waits in vain, as for a reader
// that leaves gaps, the queue waits less and less.
//
//   waiting              |C C C|            take() now: C, then back for B
//
//                  ▲ head       B comes     a moment later: B and C
//
// Merging (CSMqGraph §3.3): adjacent I/Os go to the device in one call, from any callers.
//
// Threads: not thread-safe; the lane's lock must be held.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "iomgr/io/elevator.h"
#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {

// The I/O of one call.
struct LaneBatch {
  LaneIo io;                  // all members' iovecs; its owner is the batch
  LaneIo* members = nullptr;  // chained by `next`, in the order of their places
  std::chrono::steady_clock::time_point begun = {};
  LaneBatch* next = nullptr;  // in a list of free ones

  // Adds a member that may go in one call with those before. False: it may not.
  bool append(LaneIo* member);
  bool is_merged() const { return members->next != nullptr; }
};

class LaneQueue {
 public:
  using Clock = std::chrono::steady_clock;

  // `patience`: how long a device idles for a piece that is on its way; 0: not at all.
  explicit LaneQueue(Clock::duration patience) : patience_(patience) {}

  // push() does not allocate up to this count.
  void reserve(size_t count) { sorted_.reserve(count); }

  bool empty() const { return sorted_.empty(); }

  // Sets io->arrived, unless it has waited before.
  void push(LaneIo* io, Clock::time_point now);

  // Until when the device, idle since then, should wait. If that is past, take(). Another push()
  // changes it. Precondition: !empty().
  Clock::time_point waits_until(Clock::time_point free_since);

  // Fills the batch with the I/Os that are next; it begins now. Precondition: !empty().
  void take(Clock::time_point now, LaneBatch* batch);

 private:
  // Smaller than a gate's (device_gate.h), because a lane gets smaller pieces, and each way back
  // serves only one of them.
  static constexpr uint64_t kBehindMax = 32 << 20;

  // A batch of this size belongs to a sweep. An I/O within kGapMax behind it is of the same sweep.
  static constexpr uint64_t kSweepMin = 256 << 10;
  static constexpr uint64_t kGapMax = 8 << 20;
  // After so many waits in vain in a row, skips gaps; after so many more, skips no more than that.
  static constexpr uint32_t kVainWaitsMin = 4;
  static constexpr uint32_t kVainWaitsMax = 10;

  using Place = std::vector<LaneIo*>::iterator;
  Place next_place();
  bool leaves_gap(DevicePlace next) const;
  void learn(bool leaves_gap);
  void forget_arrival(LaneIo* io);

  const Clock::duration patience_;
  Elevator elevator_{kBehindMax};
  // The size of the last batch.
  uint64_t last_bytes_ = 0;
  // Whether it has waited after that batch.
  bool waited_ = false;
  // Waits in vain in a row.
  uint32_t vain_waits_ = 0;
  // Gaps to skip before the next wait.
  uint32_t gaps_to_leave_ = 0;
  std::vector<LaneIo*> sorted_;  // by file and offset; equal ones by arrival
  LaneIo* oldest_ = nullptr;     // all of them by arrival, linked by older and newer
  LaneIo* newest_ = nullptr;
};

}  // namespace graphlane
