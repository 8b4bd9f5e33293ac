// Sizes as dd and fio read and write them: K, M, G, T are powers of 1024;
// KB, MB, GB, TB are powers of 1000; KiB, MiB … are powers of 1024 too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "iomgr/base/error.h"

namespace graphlane {

// "12M" -> 12582912. EINVAL: not a size, negative, or above 2^63 - 1.
Outcome<uint64_t> parse_size(std::string_view text);

// 12582912 -> "12M" where that is exact, else three digits: "11.9 MiB".
std::string format_size(uint64_t size_bytes);

// "1 file", "0 files", "2 files". `noun` is one that takes an s.
std::string counted(uint64_t count, std::string_view noun);

}  // namespace graphlane
