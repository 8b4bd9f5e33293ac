#include "iomgr/lane_queue.h"

#include <algorithm>
#include <tuple>

namespace graphlane {
namespace {

// A file's bytes lie together, most of them in order; which file lies where, only
// its filesystem knows.
bool comes_before(const LaneIo* a, const LaneIo* b) {
  return std::tie(a->fd, a->part_offset) < std::tie(b->fd, b->part_offset);
}

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
  io->turn = overtaking_.wait(io->length_bytes);
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), io, comes_before), io);
  io->older = newest_;
  io->newer = nullptr;
  (newest_ == nullptr ? oldest_ : newest_->newer) = io;
  newest_ = io;
}

void LaneQueue::forget_arrival(LaneIo* io) {
  overtaking_.take(io->length_bytes);
  (io->older == nullptr ? oldest_ : io->older->newer) = io->newer;
  (io->newer == nullptr ? newest_ : io->newer->older) = io->older;
}

LaneQueue::Place LaneQueue::next_place() {
  if (overtaking_.is_unfair(oldest_->turn)) {
    const auto first = std::lower_bound(sorted_.begin(), sorted_.end(), oldest_, comes_before);
    return std::find(first, sorted_.end(), oldest_);
  }
  const auto ahead = std::partition_point(sorted_.begin(), sorted_.end(), [&](const LaneIo* io) {
    return std::tie(io->fd, io->part_offset) < std::tie(head_fd_, head_offset_);
  });
  return ahead == sorted_.end() ? sorted_.begin() : ahead;
}

void LaneQueue::take(Clock::time_point now, LaneBatch* batch) {
  const Place first = next_place();
  Place end = first;
  batch->members = nullptr;
  batch->begun = now;
  while (end != sorted_.end() && batch->append(*end)) forget_arrival(*end++);
  sorted_.erase(first, end);
  head_fd_ = batch->io.fd;
  head_offset_ = batch->io.part_offset + batch->io.length_bytes;
}

}  // namespace graphlane
