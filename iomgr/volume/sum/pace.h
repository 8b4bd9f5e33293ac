// Pace: holds long reads of one thread to so many bytes a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace graphlane {

class Pace {
 public:
  // 0: no limit.
  explicit Pace(uint64_t bytes_per_second) : rate_(bytes_per_second) {}

  // Counts bytes that were read, and waits until they are within the rate.
  void moved(uint64_t bytes) {
    if (rate_ == 0) return;
    bytes_ += bytes;
    const std::chrono::duration<double> due(static_cast<double>(bytes_) /
                                            static_cast<double>(rate_));
    std::this_thread::sleep_until(begin_ + std::chrono::duration_cast<Clock::duration>(due));
  }

 private:
  using Clock = std::chrono::steady_clock;
  const uint64_t rate_;
  const Clock::time_point begin_ = Clock::now();
  uint64_t bytes_ = 0;
};

}  // namespace graphlane
