// GuessVerdict: whether guesses at the next reads are worth their I/O. After more wrong guesses
// than right ones the guesser pauses.
//
// Not thread-safe. No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>

namespace graphlane {

class GuessVerdict {
 public:
  void add_right(uint64_t count) { right_ += count; }
  void add_wrong(uint64_t count) { wrong_ += count; }

  // Judges as soon as `enough` guesses were counted. `clock`: bytes read so far.
  void judge(uint64_t enough, uint64_t clock) {
    if (right_ + wrong_ < enough) return;
    if (wrong_ > right_) paused_until_ = clock + kPauseBytes;
    right_ = wrong_ = 0;
  }
  bool is_paused(uint64_t clock) const { return clock < paused_until_; }

 private:
  static constexpr uint64_t kPauseBytes = uint64_t{512} << 20;

  uint64_t right_ = 0;  // since the last verdict
  uint64_t wrong_ = 0;
  uint64_t paused_until_ = 0;  // on the clock
};

}  // namespace graphlane
