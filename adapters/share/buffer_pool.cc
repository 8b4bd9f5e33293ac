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

void BufferPool::set_spare(const PartitionSet& unused) {
  if (unused == spare_set_) return;
  std::erase_if(spare_, [&](uint32_t partition) { return !unused.has(partition); });
  for (const auto& [partition, buffer] : buffers_) {
    if (unused.has(partition) && !spare_set_.has(partition)) spare_.push_back(partition);
  }
  spare_set_ = unused;
}

bool BufferPool::make_room(uint64_t size_bytes, size_t count, uint64_t ignored_bytes,
                           std::vector<uint32_t>& released) {
  const auto fits = [&] {
    return used_bytes_ - ignored_bytes + size_bytes <= budget_bytes_ && buffers_.size() + count <= count_max_;
  };
  while (!fits() && !spare_.empty()) {
    released.push_back(spare_.back());
    release(spare_.back());
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
  if (!spare_set_.has(partition)) return;
  spare_set_.remove(partition);
  std::erase(spare_, partition);
}

}  // namespace graphlane::share
