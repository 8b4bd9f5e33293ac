// LaneIo: what goes to a device in one call: one contiguous run of a part, and
// the places in the caller's buffer where its stripe units belong.
//
//   request   |..2..|  3  |  4  |  5  |..6..|      N = 2, device 0 has the even units
//   buffer    |..2..|     |  4  |     |..6..|      iov[0] iov[1] iov[2]
//   part 0    |..2..4..6..|                        one preadv, no copy
//
// RunCutter cuts a device's run into LaneIos that fit the largest I/O size and
// the number of iovecs; with ordinary stripe depths that is a single one.
#pragma once

#include <sys/uio.h>

#include <cstdint>

#include "iomgr/stripe.h"

namespace graphlane {

enum class IoOp : uint8_t { kRead, kWrite };

inline constexpr uint32_t kIovMax = 64;  // 24 MiB in units of 384 KiB
inline constexpr uint64_t kLaneIoMax = 24u << 20;

struct LaneIo {
  IoOp op = IoOp::kRead;
  int fd = -1;
  uint32_t device_index = 0;
  uint32_t iov_count = 0;
  uint64_t part_offset = 0;
  uint64_t length_bytes = 0;    // sum of the iovecs
  uint64_t expected_bytes = 0;  // fewer than length_bytes only past the part's end
  void* owner = nullptr;        // of whoever submitted it
  iovec iov[kIovMax];

  // Drops the first `bytes` after a short transfer.
  void advance(uint64_t bytes);
};

class RunCutter {
 public:
  // `request` is what to transfer, `buffer` where its first byte belongs.
  RunCutter(const StripeMap& map, uint32_t device_index, ByteRange request, void* buffer,
            uint64_t io_size_max = kLaneIoMax)
      : map_(map),
        device_index_(device_index),
        request_(request),
        buffer_(static_cast<char*>(buffer)),
        io_size_max_(io_size_max),
        run_(map.run(device_index, request)) {}

  // Fills everything of `io` but op, fd, owner; false when the run is done.
  // `part_size` clips expected_bytes.
  bool next(LaneIo* io, uint64_t part_size);

 private:
  const StripeMap& map_;
  const uint32_t device_index_;
  const ByteRange request_;
  char* const buffer_;
  const uint64_t io_size_max_;
  ByteRange run_;  // what is left
};

}  // namespace graphlane
