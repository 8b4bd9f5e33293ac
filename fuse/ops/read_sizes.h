// ReadSizes: how a handle is read, and so how the next one will be: as the last of the same file, or
// else as the last of any.
//
// Who reads large pieces needs no pages in the kernel (ops/open.cc), who reads small ones does. Past
// the page cache requests are what the program asks for. Through it only the first ones of a handle tell: a
// window of read-ahead is as large as what was asked for at first, or four times that, and then
// grows, whatever is asked.
//
// Threads: safe from any. Relaxed throughout: estimates.
#pragma once

#include <atomic>
#include <cstdint>

namespace graphlane {

class ReadSizes {
 public:
  // A call each, of 20 µs, takes more than its bytes do.
  static bool is_small(uint64_t bytes) { return bytes < (uint64_t{128} << 10); }

  // A request, through the page cache. Whether it shows large pieces: `request_max` is the longest that
  // the kernel makes.
  bool shows_large(uint64_t bytes, uint64_t request_max) {
    if (request_count_.load(kRelaxed) >= kFirstRequests) return false;
    return request_count_.fetch_add(1, kRelaxed) < kFirstRequests && bytes >= request_max;
  }

  // One past it, as the program asks.
  void add(uint64_t bytes) {
    all_bytes_.fetch_add(bytes, kRelaxed);
    if (is_small(bytes)) small_bytes_.fetch_add(bytes, kRelaxed);
  }
  bool were_small() const {
    return small_bytes_.load(kRelaxed) > all_bytes_.load(kRelaxed) / 2;
  }

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  static constexpr uint32_t kFirstRequests = 2;

  std::atomic<uint32_t> request_count_{0};
  std::atomic<uint64_t> all_bytes_{0};
  std::atomic<uint64_t> small_bytes_{0};
};

// Of a file, or of all: large, until somebody has read small pieces.
class LastReadSizes {
 public:
  void set(bool large) { last_.store(large ? Last::kLarge : Last::kSmall, kRelaxed); }
  bool large(const LastReadSizes& else_as) const {
    const Last last = last_.load(kRelaxed);
    return (last != Last::kUnknown ? last : else_as.last_.load(kRelaxed)) != Last::kSmall;
  }

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  enum class Last : uint8_t { kUnknown, kSmall, kLarge };
  std::atomic<Last> last_{Last::kUnknown};
};

}  // namespace graphlane
