#include "iomgr/io/lane_queue.h"

#include <algorithm>

namespace graphlane {
namespace {

DevicePlace place_of(const LaneIo* io) { return {.fd = io->fd, .offset = io->part_offset}; }

bool comes_before(const LaneIo* a, const LaneIo* b) { return place_of(a) < place_of(b); }

}  // namespace

bool LaneBatch::append(LaneIo* member) {
  LaneIo* last = members;
  if (last == nullptr) {
    io = *member;
    io.owner = this;
    io.next = nullptr;
    members = member;
    member->next = nullptr;
    return true;
  }
  const bool adjacent = member->op == io.op && member->fd == io.fd &&
                        member->fd_buffered == io.fd_buffered &&
                        member->part_offset == io.part_offset + io.length_bytes &&
                        io.expected_bytes == io.length_bytes;  // not at the part's end
  const bool fits = io.length_bytes + member->length_bytes <= kLaneIoMax &&
                    io.iov_count + member->iov_count <= kIovMax;
  if (!adjacent || !fits || io.alone || member->alone) return false;
  std::copy(member->iov, member->iov + member->iov_count, io.iov + io.iov_count);
  io.iov_count += member->iov_count;
  io.segment_count += member->segment_count;
  io.length_bytes += member->length_bytes;
  io.expected_bytes += member->expected_bytes;
  while (last->next != nullptr) last = last->next;
  last->next = member;
  member->next = nullptr;
  return true;
}

void LaneQueue::push(LaneIo* io, Clock::time_point now) {
  if (io->arrived == Clock::time_point{}) io->arrived = now;
  io->turn = elevator_.wait(io->length_bytes);
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), io, comes_before), io);
  io->older = newest_;
  io->newer = nullptr;
  (newest_ == nullptr ? oldest_ : newest_->newer) = io;
  newest_ = io;
}

void LaneQueue::forget_arrival(LaneIo* io) {
  elevator_.take(io->length_bytes);
  (io->older == nullptr ? oldest_ : io->older->newer) = io->newer;
  (io->newer == nullptr ? newest_ : io->newer->older) = io->older;
}

LaneQueue::Place LaneQueue::next_place() {
  if (elevator_.is_unfair(oldest_->turn)) {
    const auto first = std::lower_bound(sorted_.begin(), sorted_.end(), oldest_, comes_before);
    return std::find(first, sorted_.end(), oldest_);
  }
  const DevicePlace begin = elevator_.next_from();
  const auto ahead = std::partition_point(sorted_.begin(), sorted_.end(),
                                          [&](const LaneIo* io) { return place_of(io) < begin; });
  return ahead == sorted_.end() ? sorted_.begin() : ahead;
}

// Whether the I/O begins a little beyond the head of a sweep.
bool LaneQueue::leaves_gap(DevicePlace next) const {
  const DevicePlace head = elevator_.head();
  return last_bytes_ >= kSweepMin && next.fd == head.fd && next.offset > head.offset &&
         next.offset <= head.offset + kGapMax;
}

LaneQueue::Clock::time_point LaneQueue::waits_until(Clock::time_point free_since) {
  if (patience_ == Clock::duration::zero() || gaps_to_leave_ > 0) return free_since;
  if (!leaves_gap(place_of(*next_place()))) return free_since;
  waited_ = true;
  return std::max(free_since, oldest_->arrived) + patience_;
}

// Stops waiting for a reader that leaves gaps on purpose: after some waits in vain it skips twice
// as many gaps each time.
void LaneQueue::learn(bool leaves_gap) {
  if (!leaves_gap) {
    if (waited_) vain_waits_ = 0;
  } else if (gaps_to_leave_ > 0) {
    --gaps_to_leave_;
  } else {
    vain_waits_ = std::min(vain_waits_ + 1, kVainWaitsMax);
    gaps_to_leave_ = vain_waits_ < kVainWaitsMin ? 0 : (1u << (vain_waits_ - kVainWaitsMin)) - 1;
  }
  waited_ = false;
}

void LaneQueue::take(Clock::time_point now, LaneBatch* batch) {
  const Place first = next_place();
  Place end = first;
  batch->members = nullptr;
  batch->begun = now;
  while (end != sorted_.end() && batch->append(*end)) forget_arrival(*end++);
  sorted_.erase(first, end);
  learn(leaves_gap(place_of(&batch->io)));
  elevator_.move_to(place_of(&batch->io), batch->io.length_bytes);
  last_bytes_ = batch->io.length_bytes;
}

}  // namespace graphlane
