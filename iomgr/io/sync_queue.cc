#include "iomgr/io/sync_queue.h"

#include <utility>

#include "iomgr/base/sys.h"

namespace graphlane {

void SyncQueue::push(LaneIo* io) {
  assert(done_.io == nullptr);
  const ssize_t moved = io->op == IoOp::kRead
                            ? sys::preadv(io->fd, io->iov, io->iov_count, io->part_offset)
                            : sys::pwritev(io->fd, io->iov, io->iov_count, io->part_offset);
  done_ = {.io = io, .result = moved < 0 ? -errno : moved};
}

Result<uint32_t> SyncQueue::reap(std::span<IoCompletion> completions) {
  if (done_.io == nullptr || completions.empty()) return 0u;
  completions[0] = std::exchange(done_, {});
  return 1u;
}

}  // namespace graphlane
