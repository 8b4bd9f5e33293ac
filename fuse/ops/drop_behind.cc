#include "fuse/ops/drop_behind.h"

#include <algorithm>
#include <system_error>

namespace graphlane {
namespace {

bool overlap(ByteRange one, ByteRange other) {
  return one.offset < other.end() && other.offset < one.end();
}

}  // namespace

void ReadTrail::add(fuse_ino_t ino, ByteRange range) {
  learn(ino, range);
  clock_ += range.length_bytes;
  bool sweeps = false;
  const size_t looked_at = std::min(stretches_.size(), kStreamsMax);
  for (auto last = stretches_.rbegin(); last != stretches_.rbegin() + looked_at; ++last) {
    ByteRange& passed = last->range;
    if (last->ino != ino || range.end() + kNear < passed.offset ||
        range.offset > passed.end() + kNear) {
      continue;
    }
    const uint64_t begin = std::min(passed.offset, range.offset);
    const uint64_t end = std::max(passed.end(), range.end());
    if (end - begin <= kStretchMax) {
      bytes_ += end - begin - passed.length_bytes;
      passed = {.offset = begin, .length_bytes = end - begin};
      return;
    }
    sweeps = last->sweeps = true;
    break;
  }
  if (stretches_.size() == kStretchesMax) forget_first();
  stretches_.push_back({.ino = ino, .range = range, .sweeps = sweeps});
  bytes_ += range.length_bytes;
}

// Learns from a read of dropped pages that more must be kept, because threads read behind the
// kernel's requests by an unknown distance.
void ReadTrail::learn(fuse_ino_t ino, ByteRange range) {
  const uint64_t kept = kept_bytes_ + extra_bytes_;
  for (const Stretch& gone : gone_) {
    if (gone.range.length_bytes == 0 || gone.ino != ino || clock_ - gone.gone_at > kept ||
        !overlap(gone.range, range)) {
      continue;
    }
    const uint64_t extra_max = (kKeptGrowth - 1) * kept_bytes_;
    extra_bytes_ = std::min(extra_bytes_ + 2 * range.length_bytes, extra_max);
    return;
  }
}

void ReadTrail::forget_first() {
  bytes_ -= stretches_.front().range.length_bytes;
  stretches_.pop_front();
}

std::optional<ReadTrail::Stretch> ReadTrail::take(uint64_t kept_bytes) {
  kept_bytes_ = kept_bytes;
  while (!stretches_.empty() &&
         bytes_ - stretches_.front().range.length_bytes >= kept_bytes + extra_bytes_) {
    Stretch first = stretches_.front();
    forget_first();
    if (!first.sweeps && first.range.length_bytes < kSweepMin) continue;
    first.gone_at = clock_;
    gone_[gone_count_++ % gone_.size()] = first;
    return first;
  }
  return {};
}

std::optional<ReadTrail::Stretch> ReadTrail::take_of(fuse_ino_t ino) {
  for (;;) {
    const auto found = std::find_if(stretches_.begin(), stretches_.end(),
                                    [&](const Stretch& stretch) { return stretch.ino == ino; });
    if (found == stretches_.end()) return {};
    const Stretch stretch = *found;
    bytes_ -= stretch.range.length_bytes;
    stretches_.erase(found);
    if (stretch.sweeps || stretch.range.length_bytes >= kSweepMin) return stretch;
  }
}

void ReadTrail::forget(fuse_ino_t ino) {
  std::erase_if(stretches_, [&](const Stretch& stretch) {
    if (stretch.ino != ino) return false;
    bytes_ -= stretch.range.length_bytes;
    return true;
  });
}

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

void DropBehind::passed(fuse_ino_t ino, ByteRange range, uint64_t kept_bytes) {
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
    std::erase_if(waiting_, [ino](const auto& stretch) { return stretch.ino == ino; });
  }
  while (waits && dropping_ == ino) dropped_.wait(mu_);
}

void DropBehind::end_writing(fuse_ino_t ino) {
  MutexLock lock(mu_);
  const auto found = writer_counts_.find(ino);
  if (--found->second == 0) writer_counts_.erase(found);
}

void DropBehind::push(const ReadTrail::Stretch& stretch) {
  if (waiting_.size() == kWaitingMax || writer_counts_.contains(stretch.ino)) return;
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
    dropping_ = stretch.ino;
    mu_.unlock();
    // Fails if the kernel has forgotten the file, and with it the pages.
    (void)::fuse_lowlevel_notify_inval_inode(session_, stretch.ino,
                                             static_cast<off_t>(stretch.range.offset),
                                             static_cast<off_t>(stretch.range.length_bytes));
    mu_.lock();
    dropping_ = 0;
    dropped_.notify_all();
  }
}

}  // namespace graphlane
