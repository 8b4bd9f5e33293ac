// A short name for the memory order that most counters and estimates have. Each use has a comment
// why it needs no order.
#pragma once

#include <atomic>

namespace graphlane {

inline constexpr auto relaxed = std::memory_order_relaxed;

}  // namespace graphlane
