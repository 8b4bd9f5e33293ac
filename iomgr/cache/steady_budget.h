// SteadyBudget: a cache's budget, while free memory comes and goes.
//
//   room     ▁▁▂▂▂▂▂▂▂▂▂▂▂▂▂▂▁▁▂▂▂▂▂▂▂▂▂▂▂▂
//   budget   ▁▁▁▁▁▁▁▂▂▂▂▂▂▂▂▂▁▁▁▁▁▁▁▂▂▂▂▂▂▂    shrinks at once; grows when the room has
//                                             lasted while four budgets were read
//
// It grows late, because memory that a program has not used yet looks like room: a cache that
// takes it evicts the program's dirty pages. It grows in steps, because a budget that grows
// bit by bit leaves a file cached in pieces, which costs a disk as much as reading all of it.
//
// Threads: safe from any. Two concurrent adjust() calls may leave the result of either.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace graphlane {

class SteadyBudget {
 public:
  constexpr explicit SteadyBudget(uint64_t step_bytes) : step_bytes_(step_bytes) {}

  uint64_t bytes() const { return bytes_.load(kRelaxed); }

  void set(uint64_t bytes) {
    bytes_.store(bytes, kRelaxed);
    least_room_bytes_.store(UINT64_MAX, kRelaxed);
    read_bytes_.store(0, kRelaxed);
  }

  // Counts bytes read from the cache: they are its clock.
  void count_read(uint64_t bytes) { read_bytes_.fetch_add(bytes, kRelaxed); }

  // Tells the room that is free now. Returns whether the budget changed.
  bool adjust(uint64_t room_bytes) {
    const uint64_t least = std::min(room_bytes, least_room_bytes_.load(kRelaxed));
    least_room_bytes_.store(least, kRelaxed);
    const uint64_t before = bytes();
    const bool lasts = read_bytes_.load(kRelaxed) >= kPatience * before;
    const bool grows = lasts && least >= before + step_bytes_;
    if (room_bytes >= before && !grows) return false;
    set(least);
    return true;
  }

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;  // estimates
  static constexpr uint64_t kPatience = 4;                                  // budgets

  const uint64_t step_bytes_;
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> least_room_bytes_{UINT64_MAX};  // since it was set
  std::atomic<uint64_t> read_bytes_{0};                 // since then, too
};

}  // namespace graphlane
