#include "fuse/coherence/invalidation.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <system_error>

#include "fuse/ops/filesystem.h"

namespace graphlane::fuse {

Invalidation::Member::Member(Invalidation& changes, Inode& inode, int access_mode)
    : changes_(changes),
      inode_(inode),
      writes_(access_mode != O_RDONLY),
      may_map_(access_mode == O_RDWR) {
  if (may_map_) inode_.mapper_count.fetch_add(1, std::memory_order_acq_rel);
  bool stale = false;
  {
    const MutexLock lock(changes_.mu_);
    if (changes_.open_[&inode]++ == 0) {
      changes_.fs_.inodes.hold(inode);
      changes_.changed_.notify_one();
    }
    stale = inode.pages_are_stale.exchange(false);
  }
  if (stale) changes_.drop(inode);
  if (writes_) changes_.begin_writing(inode);
}

Invalidation::Member::~Member() {
  if (may_map_) inode_.mapper_count.fetch_sub(1, std::memory_order_acq_rel);
  if (writes_) {
    changes_.fs_.drop_behind.end_writing(inode_.nodeid);
    inode_.writer_count.fetch_sub(1, std::memory_order_acq_rel);
  }
  {
    const MutexLock lock(changes_.mu_);
    const auto found = changes_.open_.find(&inode_);
    if (--found->second > 0) return;
    changes_.open_.erase(found);
  }
  changes_.fs_.inodes.forget(inode_.nodeid, 1);
}

void Invalidation::start() {
  const std::chrono::duration<double> believed(fs_.options.attr_timeout_seconds);
  interval_ = std::max<std::chrono::nanoseconds>(
      kIntervalMin, std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::min<std::chrono::duration<double>>(believed, kIntervalMax)));
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error&) {  // no thread: open files are not checked between requests
  }
}

void Invalidation::stop() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  dropped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Invalidation::see(Inode& inode, const Uuid& file_id, const struct stat& st) {
  if (inode.passthrough.is_open()) return;  // the kernel has no pages of it
  const bool ours = is_ours(inode, file_id);
  if (!inode.stub.same_content(file_id, st, ours) && !ours) changed(inode, file_id);
}

void Invalidation::see_taken(Inode& inode, const Uuid& file_id, int stub_fd) {
  struct stat st;
  if (::fstat(stub_fd, &st) == 0 && !inode.stub.same_content(file_id, st, /*ours=*/true)) {
    changed(inode, file_id);
  }
}

bool Invalidation::is_ours(const Inode& inode, const Uuid& file_id) {
  return file_id == Uuid{} ? inode.writer_count.load(std::memory_order_acquire) > 0
                           : fs_.live.has(file_id);
}

void Invalidation::changed(Inode& inode, const Uuid& file_id) {
  // Processes that have it open may read up to its present end.
  if (const auto file = inode.stub.opened(file_id)) fs_.live.follow_stub(*file);
  if (!defers_drop(inode)) drop(inode);
}

// Without a handle, no program can read the pages. The next Member looks at the mark after it has
// entered `open_`, so either it sees the mark, or its file is found open here.
bool Invalidation::defers_drop(Inode& inode) {
  const MutexLock lock(mu_);
  if (open_.count(&inode) > 0) return false;
  inode.pages_are_stale.store(true);
  return true;
}

// No writer has the file open here, so no page is dirty. A drop of a dirty page during a setattr of
// the size would wait for its write, which the kernel holds back until this reply.
void Invalidation::drop(Inode& inode) {
  const bool at_once = dropping_count_.fetch_add(1, std::memory_order_acq_rel) < kDroppingMax;
  if (at_once) {
    {
      const MutexLock lock(mu_);
      dropping_here_.push_back(&inode);
    }
    drop_pages(inode);
    const MutexLock lock(mu_);
    dropping_here_.erase(std::find(dropping_here_.begin(), dropping_here_.end(), &inode));
    dropped_.notify_all();
  } else {
    const MutexLock lock(mu_);
    fs_.inodes.hold(inode);
    waiting_.push_back(&inode);
    changed_.notify_one();
  }
  dropping_count_.fetch_sub(1, std::memory_order_acq_rel);
}

bool Invalidation::will_drop(const Inode& inode) const {
  const auto has = [&](const std::vector<Inode*>& inodes) {
    return std::find(inodes.begin(), inodes.end(), &inode) != inodes.end();
  };
  return has(waiting_) || has(dropping_) || has(dropping_here_);
}

void Invalidation::begin_writing(Inode& inode) {
  inode.writer_count.fetch_add(1, std::memory_order_acq_rel);
  const bool waits = waiting_count_.fetch_add(1, std::memory_order_acq_rel) < kWaitingMax;
  fs_.drop_behind.begin_writing(inode.nodeid, waits);
  {
    const MutexLock lock(mu_);
    while (waits && !stopping_ && will_drop(inode)) dropped_.wait(mu_);
  }
  waiting_count_.fetch_sub(1, std::memory_order_acq_rel);
}

// Fails if the kernel has forgotten the file, and with it the pages.
void Invalidation::drop_pages(const Inode& inode) {
  (void)::fuse_lowlevel_notify_inval_inode(fs_.session, inode.nodeid, 0, 0);
}

void Invalidation::serve() {
  using Clock = std::chrono::steady_clock;
  MutexLock lock(mu_);
  Clock::time_point due = Clock::now() + interval_;
  for (;;) {
    while (!stopping_ && waiting_.empty() && (open_.empty() || Clock::now() < due)) {
      if (open_.empty()) {
        changed_.wait(mu_);
      } else {
        changed_.wait_until(mu_, due);
      }
    }
    std::vector<Inode*> to_drop = std::move(waiting_), to_see;
    waiting_.clear();
    dropping_ = to_drop;
    if (!stopping_ && Clock::now() >= due) {
      for (const auto& [inode, handle_count] : open_) {
        fs_.inodes.hold(*inode);
        to_see.push_back(inode);
      }
      due = Clock::now() + interval_;
    }
    const bool last = stopping_;
    mu_.unlock();
    for (const Inode* inode : to_drop) drop_pages(*inode);
    {
      const MutexLock dropped(mu_);
      dropping_.clear();
      dropped_.notify_all();
    }
    struct stat st;
    for (Inode* inode : to_see) (void)look_at(fs_, *inode, &st);
    for (const auto* inodes : {&to_drop, &to_see}) {
      for (const Inode* inode : *inodes) fs_.inodes.forget(inode->nodeid, 1);
    }
    mu_.lock();
    if (last) return;
  }
}

}  // namespace graphlane::fuse
