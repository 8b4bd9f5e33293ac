#include "fuse/ops/drop_behind.h"

#include <system_error>

namespace graphlane::fuse {
void DropBehind::start(fuse_session* session) {
  session_ = session;
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error&) {  // no thread: all pages stay
  }
}

void DropBehind::stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DropBehind::add_read(fuse_ino_t ino, ByteRange range, uint64_t kept_bytes) {
  MutexLock lock(mu_);
  trail_.add(ino, range);
  while (const auto stretch = trail_.take(kept_bytes)) push(*stretch);
}

void DropBehind::ended(fuse_ino_t ino) {
  MutexLock lock(mu_);
  while (const auto stretch = trail_.take_of(ino)) push(*stretch);
}

void DropBehind::begin_writing(fuse_ino_t ino, bool waits) {
  MutexLock lock(mu_);
  if (writer_counts_[ino]++ == 0) {
    trail_.forget(ino);
    std::erase_if(waiting_, [ino](const auto& stretch) { return stretch.file == ino; });
  }
  while (waits && dropping_ == ino) dropped_.wait(mu_);
}

void DropBehind::end_writing(fuse_ino_t ino) {
  MutexLock lock(mu_);
  const auto found = writer_counts_.find(ino);
  if (--found->second == 0) writer_counts_.erase(found);
}

void DropBehind::push(const ReadTrail::Stretch& stretch) {
  if (waiting_.size() == kWaitingMax || writer_counts_.contains(stretch.file)) return;
  waiting_.push_back(stretch);
  changed_.notify_one();
}

void DropBehind::serve() {
  MutexLock lock(mu_);
  for (;;) {
    while (waiting_.empty() && !stopping_) changed_.wait(mu_);
    if (stopping_) return;
    const ReadTrail::Stretch stretch = waiting_.front();
    waiting_.pop_front();
    dropping_ = stretch.file;
    mu_.unlock();
    // Fails if the kernel has forgotten the file, and with it the pages.
    (void)::fuse_lowlevel_notify_inval_inode(session_, stretch.file,
                                             static_cast<off_t>(stretch.range.offset),
                                             static_cast<off_t>(stretch.range.length_bytes));
    mu_.lock();
    dropping_ = 0;
    dropped_.notify_all();
  }
}

}  // namespace graphlane::fuse
