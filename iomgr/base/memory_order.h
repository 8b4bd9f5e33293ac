// A short name for the memory order that most counters and estimates have. Each use says
// beside it why nothing needs to be ordered.
#pragma once

#include <atomic>

namespace graphlane {

inline constexpr auto relaxed = std::memory_order_relaxed;

}  // namespace graphlane
