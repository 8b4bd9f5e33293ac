#include "fuse/drop_behind.h"

#include <algorithm>
#include <system_error>

#include "iomgr/memory_limit.h"

namespace graphlane {
namespace {

// Of the memory: what stays behind a sweep. Not less than several threads are apart that
// take its blocks in turn.
constexpr uint64_t kKeptShare = 4;
constexpr uint64_t kKeptMin = 64 << 20;
// What goes at a time, as a share of that.
constexpr uint64_t kStepShare = 4;
// How far from the others a read may be that still belongs to the sweep, in what is kept.
constexpr uint64_t kSlack = 2;

}  // namespace

std::optional<ByteRange> ReadTrail::advance(ByteRange read, uint64_t kept_bytes) {
  MutexLock lock(mu_);
  kept_bytes_ = std::max(kept_bytes_, kept_bytes);
  const uint64_t slack = kSlack * kept_bytes;
  if (read.end() + slack < begin_ || read.offset > end_ + slack) {  // elsewhere, or anew
    begin_ = end_ = read.offset;
    asked_bytes_ = 0;
    sweeps_ = false;
  } else if (read.offset < begin_) {  // that went too early
    kept_bytes_ = std::max(kept_bytes_, end_ - read.offset);
  }
  end_ = std::max(end_, read.end());
  asked_bytes_ += read.length_bytes;
  if (end_ - begin_ < kept_bytes_ + kept_bytes_ / kStepShare) return {};
  sweeps_ = asked_bytes_ >= (end_ - begin_) / 2;
  const ByteRange passed{.offset = begin_, .length_bytes = end_ - kept_bytes_ - begin_};
  begin_ = passed.end();
  asked_bytes_ -= std::min(asked_bytes_, passed.length_bytes);
  return sweeps_ ? std::optional(passed) : std::nullopt;
}

std::optional<ByteRange> ReadTrail::rest() {
  MutexLock lock(mu_);
  if (!sweeps_) return {};
  return ByteRange{.offset = begin_, .length_bytes = end_ - begin_};
}

void DropBehind::start(fuse_session* session) {
  session_ = session;
  kept_bytes_ = std::max(memory_available_bytes() / kKeptShare, kKeptMin);
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error&) {  // no more threads: all pages stay
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

void DropBehind::passed(fuse_ino_t ino, ReadTrail& trail, ByteRange range) {
  push(ino, trail.advance(range, kept_bytes_));
}

void DropBehind::ended(fuse_ino_t ino, ReadTrail& trail) { push(ino, trail.rest()); }

void DropBehind::push(fuse_ino_t ino, std::optional<ByteRange> range) {
  if (!range) return;
  MutexLock lock(mu_);
  push_locked(ino, *range);
}

void DropBehind::push_locked(fuse_ino_t ino, ByteRange range) {
  if (waiting_.size() == kWaitingMax) return;
  waiting_.push_back({.ino = ino, .range = range});
  changed_.notify_one();
}

void DropBehind::passed_together(fuse_ino_t ino, ByteRange range, uint64_t kept_bytes) {
  MutexLock lock(mu_);
  together_bytes_ += range.length_bytes;
  if (!together_.empty() && together_.back().ino == ino &&
      together_.back().range.end() == range.offset) {
    together_.back().range.length_bytes += range.length_bytes;
  } else {
    together_.push_back({.ino = ino, .range = range});
  }
  while (together_bytes_ - together_.front().range.length_bytes > kept_bytes) {
    const Stretch oldest = together_.front();
    together_.pop_front();
    together_bytes_ -= oldest.range.length_bytes;
    push_locked(oldest.ino, oldest.range);
  }
}

void DropBehind::serve() {
  MutexLock lock(mu_);
  for (;;) {
    while (waiting_.empty() && !stopping_) changed_.wait(mu_);
    if (stopping_) return;
    const Stretch stretch = waiting_.front();
    waiting_.pop_front();
    mu_.unlock();
    // Refused where the kernel has forgotten the file, and with it the pages.
    (void)::fuse_lowlevel_notify_inval_inode(session_, stretch.ino,
                                             static_cast<off_t>(stretch.range.offset),
                                             static_cast<off_t>(stretch.range.length_bytes));
    mu_.lock();
  }
}

}  // namespace graphlane
