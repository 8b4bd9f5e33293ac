// RequestSizes: the sizes of a sweep's requests, and the stripe depth that suits them.
//
// A depth below the requests' size cuts each into several, and costs disks a seek apiece. A depth
// far above it lets all concurrent requests meet on one device. So CSMqGraph (§3.1) takes a depth
// between the mean and the maximum of the sizes. Its engine has many more threads than devices.
// auto_depth() takes the mean, rounded up, within bounds:
//
//   mean       up to a multiple of 1 MiB (of 64 KiB below 1 MiB), at most the maximum
//   threads    the requests of all threads at a time must have kUnitsInFlight units for every
//              device, or devices would idle; the bound is a multiple of 1 MiB
//   balance    every device must get kUnitsPerDevice units, or the device with one unit more
//              would hold the others up
//   SSDs       at most 512 KiB if no device has a head, because cutting then costs nothing,
//              and a read waits for the device with one unit more
//   least      at least 64 KiB: below that, an I/O's overhead outweighs its bytes
//
// Known formats ask for 24 MiB at most, so no depth is larger.
#pragma once

#include <cstdint>
#include <map>

namespace graphlane::graphfmt {

class RequestSizes {
 public:
  void add(uint64_t size_bytes, uint64_t count = 1);

  uint64_t count() const { return count_; }
  // 0 without requests.
  uint64_t mean_bytes() const;    // rounded up
  uint64_t median_bytes() const;  // the lower one of an even number
  uint64_t max_bytes() const;

 private:
  std::map<uint64_t, uint64_t> counts_;  // of each size; engines ask for whole pages, so few
  uint64_t count_ = 0;
  uint64_t total_bytes_ = 0;
};

// Four units a device: the fullest has at most a quarter more than its share.
inline constexpr uint64_t kUnitsPerDevice = 4;
inline constexpr uint64_t kAutoDepthMin = 64u << 10;

// For one device that is busy when its neighbour is: of two, one may be the next one's.
inline constexpr uint64_t kUnitsInFlight = 2;

enum class DepthReason {
  kRequests,  // between mean and maximum
  kUnknown,   // the requests are unknown: the default depth
  kThreads,   // lowered so that few threads keep all devices busy
  kBalance,   // lowered for balance
  kSsds,      // lowered, because no device has a head
  kLeast,     // raised to kAutoDepthMin
};

struct AutoDepth {
  uint64_t bytes = 0;  // a multiple of 4096
  DepthReason reason = DepthReason::kRequests;
};

// `swept_bytes`: of the file, or of the files that the requests go to. `thread_count`: of the
// engine, at least 1.
AutoDepth auto_depth(const RequestSizes& sizes, uint64_t swept_bytes, uint32_t device_count,
                     bool on_ssds, uint32_t thread_count);

// As many threads as engines start here: one a processor.
uint32_t engine_thread_count();

// How many devices a request of this size touches, on average over all places in a
// file at which a page begins. 0 for no request.
double devices_touched(uint64_t request_bytes, uint64_t depth_bytes, uint32_t device_count);

}  // namespace graphlane::graphfmt
