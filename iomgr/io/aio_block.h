// The kernel's control block of an asynchronous I/O (io_submit(2)), without libaio: its functions
// carry symbol versions, which an archive of it cannot bring into the preload library.
#pragma once

#include <linux/aio_abi.h>

#include <cstdint>

#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {

// The event of the I/O will carry `owner`, as an address, and the block's own.
inline iocb aio_block_of(const LaneIo& io, const void* owner) {
  iocb block = {};
  block.aio_data = reinterpret_cast<uintptr_t>(owner);
  block.aio_lio_opcode = io.op == IoOp::kRead ? IOCB_CMD_PREADV : IOCB_CMD_PWRITEV;
  block.aio_fildes = static_cast<uint32_t>(io.fd);
  block.aio_buf = reinterpret_cast<uintptr_t>(io.iov);
  block.aio_nbytes = io.iov_count;
  block.aio_offset = static_cast<int64_t>(io.part_offset);
  return block;
}

}  // namespace graphlane
