#include "iomgr/read/pattern/read_order.h"

#include <algorithm>

namespace graphlane {

// ---- recording reads

// A gap between pieces belongs to another reader that has not read it yet.
template <uint32_t kRunsMax>
uint64_t ReadOrderOf<kRunsMax>::gap_max(ByteRange range) {
  return is_piece(range) ? 0 : kGapMax;
}

// Extends the run if the read adjoins its end, or its front (by a thread that is a little late).
template <uint32_t kRunsMax>
bool ReadOrderOf<kRunsMax>::extend(uint32_t age, ByteRange range) {
  Run& r = run(age);
  const uint64_t gap = gap_max(range);
  if (range.offset >= r.begin && range.offset <= r.end + gap && range.end() > r.end) {
    r.end = range.end();
    r.extended_at = clock_;
    return true;
  }
  if (range.offset < r.begin && range.end() + gap >= r.begin && range.end() <= r.end) {
    r.begin = range.offset;
    r.extended_at = clock_;
    return true;
  }
  return false;
}

template <uint32_t kRunsMax>
bool ReadOrderOf<kRunsMax>::adjoins(const Run& lower, const Run& upper, uint64_t gap) {
  return upper.begin > lower.begin && upper.begin <= lower.end + gap && upper.end > lower.end;
}

// Merges the run with a recent one that it has reached.
template <uint32_t kRunsMax>
void ReadOrderOf<kRunsMax>::join(uint32_t age, uint64_t gap) {
  for (uint32_t other = count_; other-- > recent_begin();) {
    const Run a = run(age), b = run(other);
    if (other == age || !(adjoins(a, b, gap) || adjoins(b, a, gap))) continue;
    run(std::max(age, other)) = {.begin = std::min(a.begin, b.begin),
                                 .end = std::max(a.end, b.end),
                                 .begun_at = std::min(a.begun_at, b.begun_at),
                                 .extended_at = clock_};
    remove(std::min(age, other));
    return;
  }
}

template <uint32_t kRunsMax>
void ReadOrderOf<kRunsMax>::remove(uint32_t age) {
  for (; age + 1 < count_; ++age) run(age) = run(age + 1);
  --count_;
}

template <uint32_t kRunsMax>
void ReadOrderOf<kRunsMax>::push(ByteRange range) {
  if (count_ == kRunsMax) {
    first_ = (first_ + 1) % kRunsMax;
    --count_;
  }
  run(count_++) = {
      .begin = range.offset, .end = range.end(), .begun_at = clock_, .extended_at = clock_};
}

template <uint32_t kRunsMax>
void ReadOrderOf<kRunsMax>::add(ByteRange range) {
  ++clock_;
  if (count_ > 0) {
    const Run& newest = run(count_ - 1);
    if (range.offset >= newest.begin && range.end() == newest.end) return;  // a repeated read
  }
  for (uint32_t age = count_; age-- > recent_begin();) {
    if (!extend(age, range)) continue;
    join(age, gap_max(range));
    return;
  }
  push(range);
}

// ---- prediction

// Collects ranges until there is no room, without what was read since.
template <uint32_t kRunsMax>
class ReadOrderOf<kRunsMax>::Forecast {
 public:
  Forecast(const ReadOrderOf& order, uint32_t front, uint64_t size_bytes, uint64_t bytes_max,
           std::span<ByteRange> next)
      : order_(order),
        front_(front),
        size_bytes_(size_bytes),
        room_bytes_(bytes_max),
        next_(next) {}

  uint32_t count() const { return count_; }
  bool full() const { return room_bytes_ == 0 || count_ == next_.size(); }

  void take(uint64_t begin, uint64_t end) {
    end = std::min(end, size_bytes_);
    while (begin < end && !full()) {
      const Run read = first_newer(begin, end);
      if (begin < read.begin) push(begin, read.begin);
      begin = read.end;
    }
  }

 private:
  // The first part of the range that was read since the front.
  Run first_newer(uint64_t begin, uint64_t end) const {
    Run first{.begin = end, .end = end};
    for (uint32_t age = front_ + 1; age < order_.count_; ++age) {
      const Run& newer = order_.run(age);
      if (newer.end <= begin || newer.begin >= first.begin) continue;
      first = {.begin = std::max(begin, newer.begin), .end = newer.end};
    }
    return first;
  }

  void push(uint64_t begin, uint64_t end) {
    const uint64_t length = std::min(end - begin, room_bytes_);
    room_bytes_ -= length;
    next_[count_++] = {.offset = begin, .length_bytes = length};
  }

  const ReadOrderOf& order_;
  const uint32_t front_;
  const uint64_t size_bytes_;
  uint64_t room_bytes_;
  const std::span<ByteRange> next_;
  uint32_t count_ = 0;
};

// The newest run that contains the read, or a run in front of it by threads of the same sweep.
template <uint32_t kRunsMax>
bool ReadOrderOf<kRunsMax>::find_front(ByteRange range, uint32_t* found) const {
  uint32_t age = count_;
  do {
    if (age-- == 0) return false;
  } while (range.offset < run(age).begin || range.end() > run(age).end);
  const uint64_t slack = kSlackReads * range.length_bytes;
  for (uint32_t newer = age + 1; newer < count_; ++newer) {
    const Run& r = run(newer);
    const uint64_t end = run(age).end;
    // A reader of pieces that has read on since has its own place.
    if (is_piece(range) && run(age).extended_at > r.begun_at) continue;
    if (r.begin >= run(age).begin && r.begin <= end + slack && r.end > end) age = newer;
  }
  *found = age;
  return true;
}

// Predicts what followed the previous read of the front's end, up to where the front began.
template <uint32_t kRunsMax>
void ReadOrderOf<kRunsMax>::replay(uint32_t front, Forecast& forecast) const {
  const uint64_t at = run(front).end;
  for (uint32_t before = front; before-- > 0;) {
    if (at <= run(before).begin || at > run(before).end) continue;
    forecast.take(at, run(before).end);
    for (uint32_t age = before + 1; age <= front && !forecast.full(); ++age) {
      forecast.take(run(age).begin, run(age).end);
    }
    return;
  }
}

// Sorts the last runs, because the order of the threads is arbitrary.
template <uint32_t kRunsMax>
bool ReadOrderOf<kRunsMax>::stride(uint64_t* length, uint64_t* last, uint64_t* step) const {
  if (count_ < kStrideRuns) return false;
  Run sorted[kStrideRuns];
  for (uint32_t i = 0; i < kStrideRuns; ++i) sorted[i] = run(count_ - kStrideRuns + i);
  std::sort(sorted, sorted + kStrideRuns,
            [](const Run& a, const Run& b) { return a.begin < b.begin; });
  *length = sorted[0].end - sorted[0].begin;
  *step = sorted[1].begin - sorted[0].begin;
  for (uint32_t i = 1; i < kStrideRuns; ++i) {
    if (sorted[i].end - sorted[i].begin != *length) return false;
    if (sorted[i].begin - sorted[i - 1].begin != *step) return false;
  }
  *last = sorted[kStrideRuns - 1].begin;
  return *step > 0;
}

template <uint32_t kRunsMax>
uint32_t ReadOrderOf<kRunsMax>::predict(ByteRange range, bool is_sequential, uint64_t size_bytes,
                                        uint64_t bytes_max, std::span<ByteRange> next) const {
  uint32_t front = 0;
  if (!find_front(range, &front)) return 0;
  Forecast forecast(*this, front, size_bytes, bytes_max, next);
  replay(front, forecast);
  if (forecast.count() > 0) return forecast.count();
  uint64_t length = 0, last = 0, step = 0;
  if (front + kStrideRuns >= count_ && stride(&length, &last, &step)) {
    for (uint64_t begin = last + step; begin < size_bytes && !forecast.full(); begin += step) {
      forecast.take(begin, begin + length);
    }
  } else if (is_sequential) {
    forecast.take(run(front).end, size_bytes);
  }
  return forecast.count();
}

template <uint32_t kRunsMax>
uint32_t ReadOrderOf<kRunsMax>::recall(ByteRange range, uint64_t size_bytes, uint64_t bytes_max,
                                       std::span<ByteRange> next) const {
  uint32_t front = 0;
  if (!find_front(range, &front)) return 0;
  Forecast forecast(*this, front, size_bytes, bytes_max, next);
  replay(front, forecast);
  return forecast.count();
}

template <uint32_t kRunsMax>
bool ReadOrderOf<kRunsMax>::continues(ByteRange range) const {
  uint32_t front = 0;
  if (!find_front(range, &front)) return false;
  return range.offset >= run(front).begin + range.length_bytes;
}

template class ReadOrderOf<256>;
template class ReadOrderOf<1024>;

}  // namespace graphlane
