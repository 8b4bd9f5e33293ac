#include "adapters/share/memory/buffer_pool.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "adapters/share/schedule/eviction.h"

namespace graphlane::share {

const Buffer* BufferPool::find(uint32_t unit) const {
  const auto found = buffers_.find(unit);
  return found != buffers_.end() && found->second.memory ? &found->second : nullptr;
}

bool BufferPool::is_filling(uint32_t unit) const {
  const auto found = buffers_.find(unit);
  return found != buffers_.end() && !found->second.memory;
}

void BufferPool::set_spare(const PartitionSet& unused, uint64_t round) {
  if (round != round_) used_bytes_before_ = std::exchange(used_bytes_now_, used_bytes_);
  round_ = round;
  if (unused == spare_) return;
  for (auto& [unit, buffer] : buffers_) {
    if (!spare_.has(unit)) buffer.left_in = round;
  }
  spare_ = unused;
}

bool BufferPool::make_room(uint64_t size_bytes, size_t count, const Ignored& ignored,
                           std::vector<uint32_t>& released) {
  const auto fits = [&] {
    return used_bytes_ - ignored.bytes + size_bytes <= budget_bytes_ &&
           buffers_.size() - ignored.count + count <= count_max_;
  };
  while (!fits()) {
    const auto spare = victim_of(buffers_, &Buffer::left_in, round_,
                                 [&](uint32_t unit) { return spare_.has(unit); });
    if (spare == buffers_.end()) return false;
    released.push_back(spare->first);
    release(spare->first);
  }
  return true;
}

void BufferPool::reserve(uint32_t unit, uint64_t size_bytes) {
  assert(!buffers_.contains(unit));
  buffers_[unit] = {.memory = Fd(), .size_bytes = size_bytes};
  spare_.remove(unit);
  used_bytes_ += size_bytes;
  used_bytes_max_ = std::max(used_bytes_max_, used_bytes_);
  used_bytes_now_ = std::max(used_bytes_now_, used_bytes_);
}

void BufferPool::fill(uint32_t unit, Fd memory) { buffers_.at(unit).memory = std::move(memory); }

void BufferPool::release(uint32_t unit) {
  const auto buffer = buffers_.find(unit);
  assert(buffer != buffers_.end());
  used_bytes_ -= buffer->second.size_bytes;
  buffers_.erase(buffer);
  spare_.remove(unit);
}

}  // namespace graphlane::share
