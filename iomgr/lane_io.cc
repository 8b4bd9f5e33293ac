#include "iomgr/lane_io.h"

#include <algorithm>

namespace graphlane {

void LaneIo::advance(uint64_t bytes) {
  part_offset += bytes;
  length_bytes -= bytes;
  expected_bytes -= std::min(bytes, expected_bytes);
  uint32_t skipped = 0;
  while (skipped < iov_count && bytes >= iov[skipped].iov_len) bytes -= iov[skipped++].iov_len;
  iov_count -= skipped;
  std::copy(iov + skipped, iov + skipped + iov_count, iov);
  if (iov_count > 0) {
    iov[0].iov_base = static_cast<char*>(iov[0].iov_base) + bytes;
    iov[0].iov_len -= bytes;
  }
}

bool RunCutter::next(LaneIo* io, uint64_t part_size) {
  if (run_.length_bytes == 0) return false;
  const uint64_t depth = map_.geometry().stripe_depth_bytes;
  io->device_index = device_index_;
  io->part_offset = run_.offset;
  io->length_bytes = 0;
  io->iov_count = 0;
  while (run_.length_bytes > 0 && io->iov_count < kIovMax && io->length_bytes < io_size_max_) {
    const uint64_t length =
        std::min({depth - run_.offset % depth, run_.length_bytes, io_size_max_ - io->length_bytes});
    const uint64_t logical =
        map_.logical_offset({.device_index = device_index_, .part_offset = run_.offset});
    io->iov[io->iov_count++] = {.iov_base = buffer_ + (logical - request_.offset),
                                .iov_len = length};
    io->length_bytes += length;
    run_.offset += length;
    run_.length_bytes -= length;
  }
  const uint64_t available = part_size > io->part_offset ? part_size - io->part_offset : 0;
  io->expected_bytes = std::min(io->length_bytes, available);
  return true;
}

}  // namespace graphlane
