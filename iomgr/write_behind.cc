#include "iomgr/write_behind.h"

#include <fcntl.h>

namespace graphlane {

WriteBehind::WriteBehind(const StripedFile& file)
    : file_(file), is_dirty_(file.map().geometry().device_count, false) {
  for (uint32_t d = 0; d < is_dirty_.size(); ++d) threads_.emplace_back([this, d] { run(d); });
}

WriteBehind::~WriteBehind() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void WriteBehind::noticed(ByteRange range) {
  MutexLock lock(mu_);
  for (uint32_t d = 0; d < is_dirty_.size(); ++d) {
    if (file_.map().run(d, range).length_bytes > 0) is_dirty_[d] = true;
  }
  changed_.notify_all();
}

void WriteBehind::run(uint32_t device_index) {
  MutexLock lock(mu_);
  while (!stopping_) {
    if (!is_dirty_[device_index]) {
      changed_.wait(mu_);
      continue;
    }
    is_dirty_[device_index] = false;
    mu_.unlock();
    (void)::sync_file_range(file_.parts().buffered(device_index), 0, 0, SYNC_FILE_RANGE_WRITE);
    mu_.lock();
  }
}

}  // namespace graphlane
