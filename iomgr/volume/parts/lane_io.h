// LaneIo: one call to a device: a contiguous run of a part, and the places in the caller's buffer
// for its stripe units.
//
//   request   |..2..|  3  |  4  |  5  |..6..|      N = 2, device 0 has the even units
//   buffer    |..2..|     |  4  |     |..6..|      iov[0] iov[1] iov[2]
//   part 0    |..2..4..6..|                        one preadv, no copy
//
// RequestCutter turns a request into LaneIos: one per device, unless the run is longer than the
// largest I/O or has more stripe units than there are iovecs. A request's memory may be in
// pieces; adjacent bytes of a device still are one LaneIo.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstdint>
#include <span>

#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

enum class IoOp : uint8_t { kRead, kWrite };

inline constexpr uint32_t kIovMax = 64;  // 24 MiB in units of 384 KiB
inline constexpr uint64_t kLaneIoMax = 24u << 20;

struct LaneIo {
  IoOp op = IoOp::kRead;
  uint32_t device_index = 0;
  int fd = -1;
  int fd_buffered = -1;  // used when `fd` is O_DIRECT and the filesystem rejects the I/O
  uint32_t iov_count = 0;
  uint32_t segment_count = 0;  // stripe units at the start
  uint64_t part_offset = 0;
  uint64_t length_bytes = 0;       // sum of the iovecs
  uint64_t expected_bytes = 0;     // fewer than length_bytes only past the part's end
  uint64_t moved_bytes = 0;        // so far, over all attempts
  const PartSums* sums = nullptr;  // the checksums to verify a read by
  iovec iov[kIovMax];

  // For its owner and its queue; RequestCutter leaves them unchanged.
  void* owner = nullptr;
  LaneIo* next = nullptr;   // in a batch, or in a list of free ones
  LaneIo* older = nullptr;  // in a queue (lane_queue.h)
  LaneIo* newer = nullptr;
  std::chrono::steady_clock::time_point arrived = {};
  uint64_t turn = 0;   // from its queue's Elevator
  bool alone = false;  // must not be merged
};

// The next step of an I/O after a completion. A read with a wrong checksum fails with EIO.
enum class IoStep {
  kDone,    // all that was expected has moved
  kAgain,   // submit it again: the rest of a short transfer, or EINTR, EAGAIN
  kFailed,  // *error has the errno
};
IoStep settle(LaneIo* io, int64_t result, int* error);
// Does the I/O in this thread; blocks. 0 or an errno.
int move_now(LaneIo* io);

// Devices of a file: bit d is device_index d.
using DeviceSet = uint64_t;
static_assert(kDeviceCountMax <= 64);
constexpr DeviceSet all_devices(uint32_t count) { return ~DeviceSet{0} >> (64 - count); }

// A range of a file, and the memory of its first byte.
struct Piece {
  ByteRange range;
  void* buffer = nullptr;
};

// Work to do while a thread waits for a request.
class Meanwhile {
 public:
  // Called by the waiting thread when a device has finished its part of the request, and is idle.
  virtual void device_idle() = 0;

 protected:
  ~Meanwhile() = default;
};

// A request against the parts of a file.
struct PartRequest {
  const StripeMap& map;
  const PartFiles& parts;
  uint64_t size_bytes = 0;  // of the file; for writes: the end of the last piece
  IoOp op = IoOp::kRead;
  bool direct = false;
  uint64_t io_size_max = kLaneIoMax;  // bytes; adjacent pieces are one I/O up to this
  std::span<const Piece> pieces;      // none empty, in ascending order
  Meanwhile* meanwhile = nullptr;     // told by engines that know idle devices
};

// Compares bytes in memory with the checksums of the parts, if reads are verified. 0 or an errno.
int verify_pieces(const PartRequest& request);

// Clips a read of `piece`, the request's only one, to the file. Sets `direct` if it can bypass the
// page cache: offset, buffer and length must be multiples of kBlockSize. At the end of the file
// the length is rounded up, if the buffer has room. Returns the bytes that the caller will read.
uint64_t prepare_read(PartRequest* request, Piece* piece);

class RequestCutter {
 public:
  explicit RequestCutter(const PartRequest& request) : request_(request) {}

  // Fills all of `io` but its owner's fields; false at the end of the request.
  bool next(LaneIo* io);

 private:
  bool next_run();
  bool next_device();
  bool has_room(const LaneIo& io) const;
  void take_run(LaneIo* io);

  const PartRequest& request_;
  uint32_t devices_begun_ = 0;
  uint32_t device_index_ = 0;
  size_t pieces_begun_ = 0;  // on this device
  ByteRange run_;            // the rest of the current run
};

}  // namespace graphlane
