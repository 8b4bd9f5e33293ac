#include "fuse/ops/read_trail.h"

#include <algorithm>

namespace graphlane::fuse {
namespace {

bool overlap(ByteRange one, ByteRange other) {
  return one.offset < other.end() && other.offset < one.end();
}

}  // namespace

void ReadTrail::add(uint64_t file, ByteRange range) {
  learn(file, range);
  clock_ += range.length_bytes;
  bool sweeps = false;
  const size_t looked_at = std::min(stretches_.size(), kStreamsMax);
  for (auto last = stretches_.rbegin(); last != stretches_.rbegin() + looked_at; ++last) {
    ByteRange& passed = last->range;
    if (last->file != file || range.end() + kNear < passed.offset ||
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
  stretches_.push_back({.file = file, .range = range, .sweeps = sweeps});
  bytes_ += range.length_bytes;
}

// Learns from a read of dropped pages that more must be kept, because threads read behind the
// kernel's requests by an unknown distance.
void ReadTrail::learn(uint64_t file, ByteRange range) {
  const uint64_t kept = kept_bytes_ + extra_bytes_;
  for (const Stretch& gone : gone_) {
    if (gone.range.length_bytes == 0 || gone.file != file || clock_ - gone.gone_at > kept ||
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

std::optional<ReadTrail::Stretch> ReadTrail::take_of(uint64_t file) {
  for (;;) {
    const auto found = std::find_if(stretches_.begin(), stretches_.end(),
                                    [&](const Stretch& stretch) { return stretch.file == file; });
    if (found == stretches_.end()) return {};
    const Stretch stretch = *found;
    bytes_ -= stretch.range.length_bytes;
    stretches_.erase(found);
    if (stretch.sweeps || stretch.range.length_bytes >= kSweepMin) return stretch;
  }
}

void ReadTrail::forget(uint64_t file) {
  std::erase_if(stretches_, [&](const Stretch& stretch) {
    if (stretch.file != file) return false;
    bytes_ -= stretch.range.length_bytes;
    return true;
  });
}

}  // namespace graphlane::fuse
