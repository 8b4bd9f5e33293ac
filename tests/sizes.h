// Sizes that tests are written in.
#pragma once

#include <cstdint>

namespace graphlane {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

}  // namespace graphlane
