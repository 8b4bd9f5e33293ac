#include "iomgr/read/pattern/read_stream.h"

#include <algorithm>

namespace graphlane {

void ReadStream::extend(ByteRange range) {
  if (range.offset == begin_ && range.end() == end_) return;  // a repeated read
  if (range.end() > end_) ++read_count_;
  begin_ = std::min(begin_, range.offset);
  end_ = std::max(end_, range.end());
  asked_bytes_ += range.length_bytes;
  if (end_ - begin_ > kSpanMax) {
    asked_bytes_ = asked_bytes_ / 2;
    begin_ = end_ - (end_ - begin_) / 2;
  }
}

void ReadStream::restart(ByteRange range) {
  const bool goes_back = range.offset < end_;
  read_count_ = goes_back ? std::max(read_count_, 1u) : 1;
  begin_ = range.offset;
  end_ = ahead_end_ = range.end();
  asked_bytes_ = range.length_bytes;
}

ByteRange ReadStream::take_ahead(uint64_t length_max) {
  const uint64_t length = std::min(2 * (end_ - begin_), length_max);
  if (end_ + length / 2 < ahead_end_) return {.offset = end_, .length_bytes = 0};
  const uint64_t from = std::max(end_, ahead_end_);
  ahead_end_ = end_ + length;
  return {.offset = from, .length_bytes = ahead_end_ - std::min(from, ahead_end_)};
}

}  // namespace graphlane
