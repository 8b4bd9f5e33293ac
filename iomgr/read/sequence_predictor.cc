#include "iomgr/read/sequence_predictor.h"

#include <algorithm>

#include "iomgr/base/cachestat.h"
#include "iomgr/base/memory_order.h"
#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

// One call of fadvise starts no more than a device's longest I/O, or its read-ahead.
constexpr uint64_t kBegunAtOnce = 512 << 10;

}  // namespace

uint64_t begin_in_page_cache(const StripeMap& map, std::span<const int> parts, ByteRange range) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  uint64_t missing_bytes = 0;
  for (uint32_t d = 0; d < parts.size(); ++d) {
    const ByteRange run = map.run(d, range);
    if (run.length_bytes == 0) continue;
    // Without mincore's answer all pages count as missing. (RWF_NOWAIT would itself read.)
    const auto pages = pages_cached(parts[d], run.offset, run.length_bytes);
    const uint64_t missing =
        pages ? (pages->all - pages->cached) * page : run.length_bytes;
    missing_bytes += missing;
    for (uint64_t at = run.offset; at < run.end() && missing > 0; at += kBegunAtOnce) {
      (void)sys::fadvise(parts[d], at, std::min(kBegunAtOnce, run.end() - at),
                         POSIX_FADV_WILLNEED);
    }
  }
  return missing_bytes;
}

void drop_from_page_cache(const StripeMap& map, std::span<const int> parts, ByteRange range) {
  for (uint32_t d = 0; d < parts.size(); ++d) {
    const ByteRange run = map.run(d, range);
    if (run.length_bytes == 0) continue;
    (void)sys::fadvise(parts[d], run.offset, run.length_bytes, POSIX_FADV_DONTNEED);
  }
}

uint64_t PageCacheShare::bytes() const {
  return std::min(most_bytes_.load(relaxed), bytes_.load(relaxed));
}

void PageCacheShare::set_most(uint64_t bytes) { most_bytes_.store(bytes, relaxed); }

void PageCacheShare::came(uint64_t wanted_bytes, uint64_t missing_bytes) {
  const uint64_t now = bytes();
  const bool is_lost = missing_bytes > wanted_bytes / kLossShare;
  bytes_.store(is_lost ? std::max(now / 4 * 3, kMin) : now + wanted_bytes / kGrowthShare, relaxed);
}

// The file's entry. A new file replaces the least recently read one, at a new base, so that the
// order of the replaced file matches no file.
const SequencePredictor::File& SequencePredictor::use(const Uuid& file_id) {
  File* oldest = files_;
  for (File& file : files_) {
    if (file.base != 0 && file.file_id == file_id) {
      file.last_used = ++use_count_;
      return file;
    }
    if (file.last_used < oldest->last_used) oldest = &file;
  }
  last_base_ += kFileSpan;
  *oldest = {.file_id = file_id, .base = last_base_, .last_used = ++use_count_};
  return *oldest;
}

const SequencePredictor::File* SequencePredictor::at(uint64_t place) const {
  for (const File& file : files_) {
    if (file.base != 0 && place / kFileSpan == file.base / kFileSpan) return &file;
  }
  return nullptr;
}

void SequencePredictor::remove_told(uint32_t index) {
  for (--told_count_; index < told_count_; ++index) told_[index] = told_[index + 1];
}

// Removes the bytes that are read now from the predictions. Returns how many they were.
uint64_t SequencePredictor::come_for(ByteRange range) {
  uint64_t found_bytes = 0;
  uint64_t last_number = 0;
  for (uint32_t i = told_count_; i-- > 0;) {
    ByteRange& told = told_[i].range;
    const uint64_t begin = std::max(told.offset, range.offset);
    const uint64_t end = std::min(told.end(), range.end());
    if (begin >= end) continue;
    found_bytes += end - begin;
    last_number = std::max(last_number, told_[i].number);
    // The bytes in front of it were skipped.
    wasted_bytes_.fetch_add(begin - told.offset, relaxed);
    told = {.offset = end, .length_bytes = told.end() - end};
    if (told.length_bytes == 0) remove_told(i);
  }
  while (told_count_ > 0 && told_[0].number + kLateMax < last_number) give_up_first();
  right_bytes_ += found_bytes;
  used_bytes_.fetch_add(found_bytes, relaxed);
  return found_bytes;
}

void SequencePredictor::give_up_late() {
  while (told_count_ > 0 && clock_ - told_[0].at > kPatienceBytes) give_up_first();
}

void SequencePredictor::give_up_first() {
  wrong_bytes_ += told_[0].range.length_bytes;
  wasted_bytes_.fetch_add(told_[0].range.length_bytes, relaxed);
  remove_told(0);
}

void SequencePredictor::judge() {
  if (right_bytes_ + wrong_bytes_ < kJudgedBytes) return;
  if (wrong_bytes_ > right_bytes_) paused_until_ = clock_ + kPauseBytes;
  right_bytes_ = wrong_bytes_ = 0;
}

uint64_t SequencePredictor::told_bytes() const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < told_count_; ++i) bytes += told_[i].range.length_bytes;
  return bytes;
}

// Cuts off the begin of the range that was predicted already. Whether nothing is left.
bool SequencePredictor::was_told(ByteRange* range) const {
  for (uint32_t i = 0; i < told_count_; ++i) {
    const ByteRange& told = told_[i].range;
    if (told.offset > range->offset || told.end() <= range->offset) continue;
    const uint64_t cut = std::min(told.end() - range->offset, range->length_bytes);
    *range = {.offset = range->offset + cut, .length_bytes = range->length_bytes - cut};
    if (range->length_bytes == 0) return true;
  }
  return false;
}

void SequencePredictor::tell(ByteRange range) {
  if (told_count_ == kToldMax) give_up_first();
  begun_bytes_.fetch_add(range.length_bytes, relaxed);
  told_[told_count_++] = {.range = range, .at = clock_, .number = ++last_number_};
}

uint64_t SequencePredictor::arrive(const Uuid& file_id, ByteRange range) {
  if (range.end() > kFileSpan || !lock_.lock_patiently()) return 0;
  range.offset += use(file_id).base;
  clock_ += range.length_bytes;
  order_.add(range);
  const uint64_t told_bytes = come_for(range);
  give_up_late();
  judge();
  lock_.unlock();
  return told_bytes;
}

uint32_t SequencePredictor::follow(ByteRange range, bool guesses, std::span<ByteRange> next) const {
  if (!guesses) return order_.recall(range, UINT64_MAX, UINT64_MAX, next);
  return order_.expect(range, order_.continues(range), UINT64_MAX, UINT64_MAX, next);
}

uint32_t SequencePredictor::expect(const Uuid& file_id, ByteRange range, uint64_t size_bytes,
                           uint64_t bytes_max, std::span<Next> next) {
  if (range.end() > kFileSpan || !lock_.lock_patiently()) return 0;
  const uint64_t base = use(file_id).base;
  range.offset += base;
  uint64_t room = bytes_max - std::min(bytes_max, told_bytes());
  ByteRange ranges[kRangesMax];
  const bool is_silent = clock_ < paused_until_ || room == 0;
  const uint32_t found = is_silent ? 0 : follow(range, /*guesses=*/size_bytes > 0, ranges);
  uint32_t count = 0;
  for (uint32_t i = 0; i < found && room > 0 && count < next.size(); ++i) {
    ByteRange& wanted = ranges[i];
    if (was_told(&wanted)) continue;
    const File* const file = at(wanted.offset);
    if (file == nullptr) continue;
    const uint64_t end = size_bytes > 0 && file->base == base ? base + size_bytes : wanted.end();
    if (wanted.offset >= end) continue;
    wanted.length_bytes = std::min(wanted.length_bytes, end - wanted.offset);
    // A range prefetched in two pieces costs each disk two seeks.
    if (wanted.length_bytes > room && (count > 0 || room < bytes_max / 2)) break;
    wanted.length_bytes = std::min(wanted.length_bytes, room);
    room -= wanted.length_bytes;
    tell(wanted);
    next[count++] = {.file_id = file->file_id,
                     .range = {.offset = wanted.offset - file->base,
                               .length_bytes = wanted.length_bytes}};
  }
  lock_.unlock();
  return count;
}

NextStats SequencePredictor::stats() const {
  return {.begun_bytes = begun_bytes_.load(relaxed),
          .used_bytes = used_bytes_.load(relaxed),
          .wasted_bytes = wasted_bytes_.load(relaxed)};
}

}  // namespace graphlane
