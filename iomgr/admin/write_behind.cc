#include "iomgr/admin/write_behind.h"

#include <fcntl.h>

#include <algorithm>
#include <system_error>

namespace graphlane {
namespace {

constexpr uint64_t kAtOnce = 8u << 20;

ByteRange united(ByteRange a, ByteRange b) {
  if (a.length_bytes == 0) return b;
  const uint64_t begin = std::min(a.offset, b.offset);
  return {.offset = begin, .length_bytes = std::max(a.end(), b.end()) - begin};
}

}  // namespace

WriteBehind::WriteBehind(const StripedFile& file)
    : file_(file), waiting_(file.map().geometry().device_count) {
  threads_.reserve(waiting_.size());
  try {
    for (uint32_t d = 0; d < waiting_.size(); ++d) threads_.emplace_back([this, d] { run(d); });
    // no more threads: the kernel writes the other devices itself
  } catch (const std::system_error&) {
  }
}

WriteBehind::~WriteBehind() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void WriteBehind::finish() {
  {
    MutexLock lock(mu_);
    finishing_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void WriteBehind::noticed(ByteRange range) {
  MutexLock lock(mu_);
  for (uint32_t d = 0; d < waiting_.size(); ++d) {
    const ByteRange run = file_.map().run(d, range);
    if (run.length_bytes > 0) waiting_[d] = united(waiting_[d], run);
  }
  changed_.notify_all();
}

void WriteBehind::run(uint32_t device_index) {
  MutexLock lock(mu_);
  while (!stopping_) {
    ByteRange& waiting = waiting_[device_index];
    if (waiting.length_bytes == 0) {
      if (finishing_) return;
      changed_.wait(mu_);
      continue;
    }
    const ByteRange now{.offset = waiting.offset,
                        .length_bytes = std::min(waiting.length_bytes, kAtOnce)};
    waiting = {.offset = now.end(), .length_bytes = waiting.end() - now.end()};
    mu_.unlock();
    (void)::sync_file_range(file_.parts().buffered(device_index), static_cast<off_t>(now.offset),
                            static_cast<off_t>(now.length_bytes), SYNC_FILE_RANGE_WRITE);
    mu_.lock();
  }
}

}  // namespace graphlane
