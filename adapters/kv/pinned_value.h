// PinnedValue: the bytes of a value where they lie: in the cache, in a page of a buffer, or, if the
// value lies on several pages, in memory of its own. They stay until it is released or destroyed.
//
// Threads: one at a time; it may move to another thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace graphlane::kv {

// How often something is pinned. It stays where it is while that is not 0.
using PinCount = std::atomic<uint32_t>;

class PinnedValue {
 public:
  PinnedValue() = default;  // a key that is not there
  // `pins` was counted up by the caller.
  PinnedValue(std::span<const uint8_t> bytes, PinCount* pins)
      : bytes_(bytes), pins_(pins), is_found_(true) {}
  PinnedValue(std::unique_ptr<uint8_t[]> own, size_t size)
      : bytes_(own.get(), size), own_(std::move(own)), is_found_(true) {}
  PinnedValue(PinnedValue&& other) noexcept { swap(other); }
  PinnedValue& operator=(PinnedValue&& other) noexcept {
    PinnedValue(std::move(other)).swap(*this);
    return *this;
  }
  ~PinnedValue() { release(); }

  // Whether the store has the key. Its value may be empty.
  explicit operator bool() const { return is_found_; }
  std::span<const uint8_t> bytes() const { return bytes_; }

  void release() {
    // Release: what evicts sees the end of all reading.
    if (pins_ != nullptr) std::exchange(pins_, nullptr)->fetch_sub(1, std::memory_order_release);
    own_.reset();
    bytes_ = {};
  }

 private:
  void swap(PinnedValue& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(pins_, other.pins_);
    std::swap(own_, other.own_);
    std::swap(is_found_, other.is_found_);
  }

  std::span<const uint8_t> bytes_;
  PinCount* pins_ = nullptr;
  std::unique_ptr<uint8_t[]> own_;
  bool is_found_ = false;
};

}  // namespace graphlane::kv
