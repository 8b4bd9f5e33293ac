#include "iomgr/volume/parts/lane_io.h"

#include <algorithm>
#include <cerrno>

#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

constexpr bool is_aligned(uint64_t value) { return value % kBlockSize == 0; }

// Drops the bytes that have moved.
void advance(LaneIo* io, uint64_t bytes) {
  io->part_offset += bytes;
  io->length_bytes -= bytes;
  io->expected_bytes -= bytes;
  uint32_t whole = 0;
  while (whole < io->iov_count && bytes >= io->iov[whole].iov_len) {
    bytes -= io->iov[whole++].iov_len;
  }
  io->iov_count -= whole;
  std::copy(io->iov + whole, io->iov + whole + io->iov_count, io->iov);
  if (io->iov_count > 0) {
    io->iov[0].iov_base = static_cast<char*>(io->iov[0].iov_base) + bytes;
    io->iov[0].iov_len -= bytes;
  }
}

}  // namespace

IoStep settle(LaneIo* io, int64_t result, int* error) {
  if (result == -EINTR || result == -EAGAIN) return IoStep::kAgain;
  if (result == -EINVAL && io->fd != io->fd_buffered) {
    io->fd = io->fd_buffered;  // the filesystem needs a larger alignment than 4096
    return IoStep::kAgain;
  }
  if (result < 0) {
    *error = static_cast<int>(-result);
    return IoStep::kFailed;
  }
  const uint64_t moved = std::min(static_cast<uint64_t>(result), io->expected_bytes);
  if (io->sums != nullptr && moved > 0) {
    *error = io->sums->verify(io->device_index, io->fd, io->part_offset, {io->iov, io->iov_count},
                              moved);
    if (*error != 0) return IoStep::kFailed;
  }
  io->moved_bytes += moved;
  if (moved == io->expected_bytes) return IoStep::kDone;
  if (moved == 0) {  // the part is shorter than the layout says
    *error = EIO;
    return IoStep::kFailed;
  }
  advance(io, moved);
  if (!is_aligned(moved)) io->fd = io->fd_buffered;
  return IoStep::kAgain;
}

int move_now(LaneIo* io) {
  for (;;) {
    const ssize_t moved = io->op == IoOp::kRead
                              ? sys::preadv(io->fd, io->iov, io->iov_count, io->part_offset)
                              : sys::pwritev(io->fd, io->iov, io->iov_count, io->part_offset);
    int error = 0;
    switch (settle(io, moved < 0 ? -errno : moved, &error)) {
      case IoStep::kDone: return 0;
      case IoStep::kAgain: break;
      case IoStep::kFailed: return error;
    }
  }
}

int verify_pieces(const PartRequest& request) {
  if (!request.parts.sums().verifies()) return 0;
  RequestCutter cutter(request);
  LaneIo io;
  while (cutter.next(&io)) {
    const int error = io.sums->verify(io.device_index, io.fd, io.part_offset,
                                      {io.iov, io.iov_count}, io.expected_bytes);
    if (error != 0) return error;
  }
  return 0;
}

uint64_t prepare_read(PartRequest* request, Piece* piece) {
  ByteRange& range = piece->range;
  const uint64_t asked_end = range.end();
  if (range.offset >= request->size_bytes) {
    range.length_bytes = 0;
    return 0;
  }
  range.length_bytes = std::min(range.length_bytes, request->size_bytes - range.offset);
  const uint64_t readable = range.length_bytes;
  if (!request->direct) return readable;
  const uint64_t fetch_end = std::min(round_up(range.end(), kBlockSize), asked_end);
  request->direct = is_aligned(range.offset) && is_aligned(fetch_end) &&
                    is_aligned(reinterpret_cast<uintptr_t>(piece->buffer));
  if (request->direct) range.length_bytes = fetch_end - range.offset;
  return readable;
}

bool RequestCutter::next_device() {
  const uint32_t device_count = request_.map.geometry().device_count;
  if (devices_begun_ == device_count) return false;
  const uint32_t first = request_.map.locate(request_.pieces.front().range.offset).device_index;
  device_index_ = (first + devices_begun_++) % device_count;
  pieces_begun_ = 0;
  return true;
}

bool RequestCutter::next_run() {
  if (devices_begun_ == 0) next_device();
  do {
    while (pieces_begun_ < request_.pieces.size()) {
      run_ = request_.map.run(device_index_, request_.pieces[pieces_begun_++].range);
      if (run_.length_bytes > 0) return true;
    }
  } while (next_device());
  return false;
}

bool RequestCutter::has_room(const LaneIo& io) const {
  return io.iov_count < kIovMax && io.length_bytes < request_.io_size_max;
}

// Adds as much of the run as the I/O has room for.
void RequestCutter::take_run(LaneIo* io) {
  const StripeMap& map = request_.map;
  const uint64_t depth = map.geometry().stripe_depth_bytes;
  const Piece& piece = request_.pieces[pieces_begun_ - 1];
  while (run_.length_bytes > 0 && has_room(*io)) {
    const uint64_t length = std::min(
        {depth - run_.offset % depth, run_.length_bytes, request_.io_size_max - io->length_bytes});
    const uint64_t logical =
        map.logical_offset({.device_index = device_index_, .part_offset = run_.offset});
    char* const memory = static_cast<char*>(piece.buffer) + (logical - piece.range.offset);
    io->iov[io->iov_count++] = {.iov_base = memory, .iov_len = length};
    io->length_bytes += length;
    run_.offset += length;
    run_.length_bytes -= length;
  }
}

bool RequestCutter::next(LaneIo* io) {
  if (run_.length_bytes == 0 && !next_run()) return false;
  io->op = request_.op;
  io->device_index = device_index_;
  const PartSums& sums = request_.parts.sums();
  io->sums = io->op == IoOp::kRead && sums.verifies() ? &sums : nullptr;
  io->fd_buffered = request_.parts.buffered(device_index_);
  io->fd = request_.direct ? request_.parts.direct(device_index_) : io->fd_buffered;
  io->part_offset = run_.offset;
  io->length_bytes = 0;
  io->moved_bytes = 0;
  io->iov_count = 0;
  const auto goes_on = [&] {
    return device_index_ == io->device_index && run_.offset == io->part_offset + io->length_bytes;
  };
  do take_run(io);
  while (run_.length_bytes == 0 && has_room(*io) && next_run() && goes_on());
  io->segment_count = io->iov_count;
  const uint64_t part_end = request_.map.part_size(io->device_index, request_.size_bytes);
  io->expected_bytes =
      part_end > io->part_offset ? std::min(io->length_bytes, part_end - io->part_offset) : 0;
  return true;
}

}  // namespace graphlane
