#include "iomgr/read/pattern/read_order.h"

#include <algorithm>

namespace graphlane {

// ---- recording reads

// Pieces must adjoin exactly, because another reader is expected to read the gap.
uint64_t ReadOrder::gap_max(ByteRange range) { return is_piece(range) ? 0 : kGapMax; }

// Extends the run if the read adjoins its end, or its front (by a thread that is a little late).
bool ReadOrder::extend(uint32_t age, ByteRange range) {
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

bool ReadOrder::adjoins(const Run& lower, const Run& upper, uint64_t gap) {
  return upper.begin > lower.begin && upper.begin <= lower.end + gap && upper.end > lower.end;
}

// The runs of the scope that a read may adjoin, the newest first.
ReadOrder::Recent ReadOrder::recent_runs(ByteRange scope) const {
  Recent recent;
  const uint32_t oldest = count_ > kLookBackRuns ? count_ - kLookBackRuns : 0;
  for (uint32_t age = count_; age-- > oldest && recent.count < kRecentRuns;) {
    if (overlaps(scope, run(age))) recent.ages[recent.count++] = age;
  }
  return recent;
}

// Merges the run with another recent one that it has reached.
void ReadOrder::join(uint32_t age, const Recent& recent, uint64_t gap) {
  for (const uint32_t other : recent) {
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

void ReadOrder::remove(uint32_t age) {
  for (; age + 1 < count_; ++age) run(age) = run(age + 1);
  --count_;
}

void ReadOrder::push(ByteRange range) {
  if (count_ == kRunsMax) {
    first_ = (first_ + 1) % kRunsMax;
    --count_;
  }
  run(count_++) = {
      .begin = range.offset, .end = range.end(), .begun_at = clock_, .extended_at = clock_};
}

void ReadOrder::add(ByteRange range, ByteRange scope) {
  ++clock_;
  const Recent recent = recent_runs(scope);
  if (recent.count > 0) {
    const Run& newest = run(recent.ages[0]);
    if (range.offset >= newest.begin && range.end() == newest.end) return;  // a repeated read
  }
  for (const uint32_t age : recent) {
    if (!extend(age, range)) continue;
    join(age, recent, gap_max(range));
    return;
  }
  push(range);
}

// ---- prediction

// Collects ranges of the scope until there is no room, without what was read since.
class ReadOrder::Forecast {
 public:
  Forecast(const ReadOrder& order, uint32_t front, ByteRange scope, std::span<ByteRange> next)
      : order_(order), front_(front), scope_(scope), next_(next) {}

  uint32_t count() const { return count_; }
  bool full() const { return count_ == next_.size(); }
  ByteRange scope() const { return scope_; }

  void take(uint64_t begin, uint64_t end) {
    begin = std::max(begin, scope_.offset);
    end = std::min(end, scope_.end());
    while (begin < end && !full()) {
      const Run read = first_newer(begin, end);
      if (begin < read.begin) {
        next_[count_++] = {.offset = begin, .length_bytes = read.begin - begin};
      }
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

  const ReadOrder& order_;
  const uint32_t front_;
  const ByteRange scope_;
  const std::span<ByteRange> next_;
  uint32_t count_ = 0;
};

// The newest run that contains the read, or a run in front of it by threads of the same sweep.
bool ReadOrder::find_front(ByteRange range, uint32_t* found) const {
  uint32_t age = count_;
  do {
    if (age-- == 0) return false;
  } while (range.offset < run(age).begin || range.end() > run(age).end);
  const uint64_t slack = kSlackReads * range.length_bytes;
  for (uint32_t newer = age + 1; newer < count_; ++newer) {
    const Run& r = run(newer);
    const uint64_t end = run(age).end;
    // A run that was extended after the newer one began has a reader of its own.
    if (is_piece(range) && run(age).extended_at > r.begun_at) continue;
    if (r.begin >= run(age).begin && r.begin <= end + slack && r.end > end) age = newer;
  }
  *found = age;
  return true;
}

// Predicts what followed the previous read of the front's end, up to where the front began.
void ReadOrder::replay(uint32_t front, Forecast& forecast) const {
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

// Predicts by the last runs of the scope, if the front is one of them. They are sorted, because the
// order of the threads is arbitrary.
void ReadOrder::stride(uint32_t front, Forecast& forecast) const {
  Run last[kStrideRuns];
  uint32_t found = 0;
  bool has_front = false;
  for (uint32_t age = count_; age-- > 0 && found < kStrideRuns;) {
    if (!overlaps(forecast.scope(), run(age))) continue;
    last[found++] = run(age);
    has_front |= age == front;
  }
  if (found < kStrideRuns || !has_front) return;
  std::sort(last, last + kStrideRuns, [](const Run& a, const Run& b) { return a.begin < b.begin; });
  const uint64_t length = last[0].end - last[0].begin;
  const uint64_t step = last[1].begin - last[0].begin;
  for (uint32_t i = 1; i < kStrideRuns; ++i) {
    if (last[i].end - last[i].begin != length) return;
    if (last[i].begin - last[i - 1].begin != step) return;
  }
  if (step == 0) return;
  uint64_t begin = last[kStrideRuns - 1].begin;
  while (forecast.scope().end() - begin > step && !forecast.full()) {
    begin += step;
    forecast.take(begin, begin + length);
  }
}

uint32_t ReadOrder::predict(ByteRange range, Guess guess, ByteRange scope,
                            std::span<ByteRange> next) const {
  uint32_t front = 0;
  if (!find_front(range, &front)) return 0;
  Forecast forecast(*this, front, scope, next);
  replay(front, forecast);
  if (forecast.count() == 0 && guess != Guess::kNone) stride(front, forecast);
  const bool is_continued = range.offset >= run(front).begin + range.length_bytes;
  const bool is_sequential =
      guess == Guess::kSequential || (guess == Guess::kContinued && is_continued);
  if (forecast.count() == 0 && is_sequential) forecast.take(run(front).end, scope.end());
  return forecast.count();
}

}  // namespace graphlane
