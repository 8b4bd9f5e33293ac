#include "iomgr/io/aio_queue.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "iomgr/base/setup_cookie.h"
#include "iomgr/base/sys.h"
#include "iomgr/io/aio_block.h"

namespace graphlane {
namespace {

// These return a count, or -errno.
int result_of(long status) { return static_cast<int>(status < 0 ? -errno : status); }

int setup(uint32_t depth, aio_context_t* context) {
  return result_of(::syscall(SYS_io_setup, depth, context, kSetupCookie));
}
int submit_one(aio_context_t context, iocb* block) {
  return result_of(::syscall(SYS_io_submit, context, 1L, &block));
}
int get_events(aio_context_t context, long count_min, long count_max, io_event* events) {
  return result_of(::syscall(SYS_io_getevents, context, count_min, count_max, events, nullptr));
}

}  // namespace

Result<void> AioQueue::open(uint32_t depth) {
  assert(depth <= kQueueDepthMax);
  const int status = setup(depth + 1, &context_);  // one more for wake_by()
  if (status < 0) return Errno{-status};
  depth_ = depth;
  for (uint32_t i = 0; i < depth; ++i) free_[free_count_++] = &control_blocks_[i];
  return {};
}

AioQueue::~AioQueue() {
  if (depth_ > 0) ::syscall(SYS_io_destroy, context_);
}

void AioQueue::push(LaneIo* io) {
  assert(in_flight_ < depth_);
  iocb* block = free_[--free_count_];
  *block = aio_block_of(*io, io);
  ++in_flight_;
  int status;
  do {
    status = submit_one(context_, block);
  } while (status == -EINTR);
  if (status == 1) return;
  free_[free_count_++] = block;
  refused_[refused_count_++] = {.io = io, .result = status < 0 ? status : -EAGAIN};
}

// Linux 4.18.
bool AioQueue::wake_by(int event_fd) {
  if (armed_fd_ >= 0) return true;
  wake_block_ = {};
  wake_block_.aio_lio_opcode = IOCB_CMD_POLL;
  wake_block_.aio_fildes = static_cast<uint32_t>(event_fd);
  wake_block_.aio_buf = POLLIN;
  if (submit_one(context_, &wake_block_) != 1) return false;
  armed_fd_ = event_fd;
  return true;
}

Result<uint32_t> AioQueue::reap(std::span<IoCompletion> completions) {
  uint32_t count = 0;
  while (refused_count_ > 0 && count < completions.size()) {
    completions[count++] = refused_[--refused_count_];
  }
  io_event events[kQueueDepthMax];
  const uint32_t under_way = in_flight_ - count + (armed_fd_ >= 0 ? 1 : 0);
  const auto room =
      static_cast<long>(std::min<size_t>({completions.size() - count, under_way, kQueueDepthMax}));
  int status = 0;
  if (room > 0) {
    do {
      status = get_events(context_, count > 0 ? 0 : 1, room, events);
    } while (status == -EINTR);
  }
  if (status < 0) return Errno{-status};
  for (int i = 0; i < status; ++i) {
    if (events[i].data == 0) {
      uint64_t value;
      (void)!sys::read(std::exchange(armed_fd_, -1), &value, sizeof value);
      continue;
    }
    completions[count++] = {.io = reinterpret_cast<LaneIo*>(events[i].data),
                            .result = static_cast<int64_t>(events[i].res)};
    free_[free_count_++] = reinterpret_cast<iocb*>(events[i].obj);
  }
  in_flight_ -= count;
  return count;
}

}  // namespace graphlane
