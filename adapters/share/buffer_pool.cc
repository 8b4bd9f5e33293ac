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
  for (auto& [partition, buffer] : buffers_) {
    if (!spare_.has(partition)) buffer.left_in = round;
  }
  spare_ = unused;
}

// The oldest that is stale, else the last one; none, if none is spare.
std::optional<uint32_t> BufferPool::victim() const {
  std::optional<uint32_t> last, oldest;
  for (const auto& [partition, buffer] : buffers_) {
    if (!spare_.has(partition)) continue;
    last = partition;
    if (!oldest || buffer.left_in < buffers_.at(*oldest).left_in) oldest = partition;
  }
  const bool is_stale = oldest && buffers_.at(*oldest).left_in + kStaleRounds <= round_;
  return is_stale ? oldest : last;
}

bool BufferPool::make_room(uint64_t size_bytes, size_t count, uint64_t ignored_bytes,
                           std::vector<uint32_t>& released) {
  const auto fits = [&] {
    return used_bytes_ - ignored_bytes + size_bytes <= budget_bytes_ && buffers_.size() + count <= count_max_;
  };
  while (!fits()) {
    const std::optional<uint32_t> spare = victim();
    if (!spare) return false;
    released.push_back(*spare);
    release(*spare);
  }
  return true;
}

void BufferPool::reserve(uint32_t partition, uint64_t size_bytes) {
  assert(!buffers_.contains(partition));
  buffers_[partition] = {.memory = Fd(), .size_bytes = size_bytes};
  spare_.remove(partition);
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
}

}  // namespace graphlane::share
