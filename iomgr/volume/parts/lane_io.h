// LaneIo: what goes to a device in one call: one contiguous run of a part, and
// the places in the caller's buffer where its stripe units belong.
//
//   request   |..2..|  3  |  4  |  5  |..6..|      N = 2, device 0 has the even units
//   buffer    |..2..|     |  4  |     |..6..|      iov[0] iov[1] iov[2]
//   part 0    |..2..4..6..|                        one preadv, no copy
//
// RequestCutter turns a request into LaneIos: one a device, unless the run is
// longer than the largest I/O or touches more stripe units than there are
// iovecs. A request may have its memory in pieces; what lies one behind the other on
// a device is one LaneIo all the same.
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
  int fd_buffered = -1;         // taken when `fd` is O_DIRECT and refuses
  uint32_t iov_count = 0;
  uint32_t segment_count = 0;   // stripe units when it was cut
  uint64_t part_offset = 0;
  uint64_t length_bytes = 0;    // sum of the iovecs
  uint64_t expected_bytes = 0;  // fewer than length_bytes only past the part's end
  uint64_t moved_bytes = 0;     // so far, over all tries
  const PartSums* sums = nullptr;  // what is read is verified by these
  iovec iov[kIovMax];

  // Its owner's and its queue's; RequestCutter leaves them as they are.
  void* owner = nullptr;
  LaneIo* next = nullptr;   // in a batch, or in a list of free ones
  LaneIo* older = nullptr;  // in a queue (lane_queue.h)
  LaneIo* newer = nullptr;
  std::chrono::steady_clock::time_point arrived = {};
  uint64_t turn = 0;        // by its queue's Elevator
  bool alone = false;       // not to be merged
};

// The next step of an I/O after a completion. A read that does not match its checksum has failed with EIO.
enum class IoStep {
  kDone,      // all that was expected has moved
  kAgain,     // submit it again: the rest of a short transfer, or EINTR, EAGAIN
  kFailed,    // *error has the errno
};
IoStep settle(LaneIo* io, int64_t result, int* error);

// Devices of a file: bit d is the one of device_index d.
using DeviceSet = uint64_t;
static_assert(kDeviceCountMax <= 64);
constexpr DeviceSet all_devices(uint32_t count) { return ~DeviceSet{0} >> (64 - count); }

// A range of a file, and the memory of its first byte.
struct Piece {
  ByteRange range;
  void* buffer = nullptr;
};

// Who has something to do while a request is waited for.
class Meanwhile {
 public:
  // By the thread that waits: a device has done its part of the request, and all else it
  // was asked for.
  virtual void device_idle() = 0;

 protected:
  ~Meanwhile() = default;
};

// A request against the parts of a file.
struct PartRequest {
  const StripeMap& map;
  const PartFiles& parts;
  uint64_t size_bytes = 0;  // of the file; for writes: past the end of the last piece
  IoOp op = IoOp::kRead;
  bool direct = false;
  uint64_t io_size_max = kLaneIoMax;  // bytes; what adjoins on a device is one I/O up to this
  std::span<const Piece> pieces;      // none empty, in the order of their ranges
  Meanwhile* meanwhile = nullptr;     // told where devices are known to be idle
};

// Clips a read of `piece`, the request's only one, to the file, and settles whether it
// can go past the page cache: offset, buffer and length must be multiples of
// kBlockSize; only at the end of the file may the length be rounded up, as far as the
// buffer has room. Returns the bytes that the caller will have read.
uint64_t prepare_read(PartRequest* request, Piece* piece);

class RequestCutter {
 public:
  explicit RequestCutter(const PartRequest& request) : request_(request) {}

  // Fills all of `io` that is not its owner's; false when the request is cut up.
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
  ByteRange run_;            // what is left of the last one's
};

}  // namespace graphlane
