#include "adapters/share/buffer_pool.h"

#include <algorithm>
#include <cassert>

namespace graphlane::share {

const Buffer* BufferPool::find(uint32_t partition) const {
  const auto found = buffers_.find(partition);
  return found != buffers_.end() && found->second.memory ? &found->second : nullptr;
}

bool BufferPool::is_filling(uint32_t partition) const {
  const auto found = buffers_.find(partition);
  return found != buffers_.end() && !found->second.memory;
}

void BufferPool::set_spare(const PartitionSet& unused, uint64_t round) {
  round_ = round;
  if (unused == spare_) return;
  for (const auto& [partition, buffer] : buffers_) {
    if (unused.has(partition) == spare_.has(partition)) continue;
    if (unused.has(partition)) {
      left_[partition] = round;
      by_age_.emplace(round, partition);
    } else {
      forget(partition);
    }
  }
  spare_ = unused;
}

void BufferPool::forget(uint32_t partition) {
  const auto left = left_.find(partition);
  if (left == left_.end()) return;
  by_age_.erase({left->second, partition});
  left_.erase(left);
}

uint32_t BufferPool::victim() const {
  const auto [round, oldest] = *by_age_.begin();
  return round + kStaleRounds <= round_ ? oldest : left_.rbegin()->first;
}

bool BufferPool::make_room(uint64_t size_bytes, size_t count, uint64_t ignored_bytes,
                           std::vector<uint32_t>& released) {
  const auto fits = [&] {
    return used_bytes_ - ignored_bytes + size_bytes <= budget_bytes_ && buffers_.size() + count <= count_max_;
  };
  while (!fits() && !left_.empty()) {
    released.push_back(victim());
    release(released.back());
  }
  return fits();
}

void BufferPool::reserve(uint32_t partition, uint64_t size_bytes) {
  assert(!buffers_.contains(partition));
  buffers_[partition] = {.memory = Fd(), .size_bytes = size_bytes};
  used_bytes_ += size_bytes;
  used_bytes_max_ = std::max(used_bytes_max_, used_bytes_);
}

void BufferPool::fill(uint32_t partition, Fd memory) {
  buffers_.at(partition).memory = std::move(memory);
}

void BufferPool::release(uint32_t partition) {
  const auto buffer = buffers_.find(partition);
  assert(buffer != buffers_.end());
  used_bytes_ -= buffer->second.size_bytes;
  buffers_.erase(buffer);
  spare_.remove(partition);
  forget(partition);
}

}  // namespace graphlane::share
