// Parses a size (size.h), for code that reports errors by number only.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>
#include <string_view>

#include "iomgr/base/result.h"

namespace graphlane {

inline constexpr std::string_view kSizePrefixes = "KMGT";

// "12M" -> 12582912. EINVAL: not a size, or negative; ERANGE: above 2^63 - 1.
Result<uint64_t> parse_size_text(std::string_view text);

}  // namespace graphlane
