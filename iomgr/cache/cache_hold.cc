#include <cassert>

#include "iomgr/base/memory_order.h"
#include "iomgr/cache/cache.h"

namespace graphlane {
namespace {}  // namespace

FrameHold& FrameHold::operator=(FrameHold&& other) noexcept {
  if (this == &other) return *this;
  release();
  cache_ = std::exchange(other.cache_, nullptr);
  frame_ = other.frame_;
  version_ = other.version_;
  return *this;
}

bool FrameHold::intact() const { return cache_->slots_[frame_].load().version() == version_; }

void FrameHold::release() {
  if (cache_ != nullptr) std::exchange(cache_, nullptr)->unpin(frame_, version_);
}

std::span<const std::byte> Pin::bytes() const {
  const CacheSlot& slot = cache_->slots_[frame_];
  return {cache_->frames_ + frame_ * cache_->frame_bytes_, slot.outcome.load(relaxed)};
}

Fill::~Fill() {
  if (*this) abandon(ECANCELED);
}

Fill& Fill::operator=(Fill&& other) noexcept {
  if (this != &other && *this) abandon(ECANCELED);
  FrameHold::operator=(std::move(other));
  return *this;
}

std::span<std::byte> Fill::bytes() const {
  return {cache_->frames_ + frame_ * cache_->frame_bytes_, cache_->frame_bytes_};
}

Pin Fill::publish(uint64_t valid_bytes) {
  assert(valid_bytes <= cache_->frame_bytes_);
  if (intact()) cache_->end_fill(frame_, FrameState::kValid, static_cast<uint32_t>(valid_bytes));
  return Pin(std::move(*this));
}

void Fill::abandon(int error) {
  assert(error > 0);
  if (intact()) cache_->end_fill(frame_, FrameState::kFailed, static_cast<uint32_t>(error));
  release();
}

bool FrameWait::ended() const {
  return cache_->slots_[frame_].load().state() != FrameState::kFilling;
}

Result<Pin> FrameWait::wait(uint64_t timeout_ns) {
  CacheSlot& slot = cache_->slots_[frame_];
  const uint64_t deadline = timeout_ns == kForever ? 0 : monotonic_ns() + timeout_ns;
  FrameWord word;
  for (;;) {
    // Must precede the load of the word: a fill that ends after that load changes `ended`.
    const uint32_t ended = slot.ended.load(std::memory_order_acquire);
    word = slot.load();
    if (word.state() != FrameState::kFilling) break;
    const uint64_t now = deadline == 0 ? 0 : monotonic_ns();
    if (deadline != 0 && now >= deadline) return Errno{ETIMEDOUT};
    futex_wait(slot.ended, ended, deadline == 0 ? 0 : deadline - now);
  }
  if (word.state() == FrameState::kValid) return Pin(std::move(*this));
  const int error = intact() ? static_cast<int>(slot.outcome.load(relaxed)) : ECANCELED;
  release();
  return Errno{error};
}

}  // namespace graphlane
