// A short name for the memory order of most counters and estimates. Each use has a comment that
// says why no order is needed.
#pragma once

#include <atomic>

namespace graphlane {

inline constexpr auto relaxed = std::memory_order_relaxed;

}  // namespace graphlane
