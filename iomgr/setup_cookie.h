// The third argument, which the kernel does not look at, of our own io_uring_setup(2) and io_setup(2). Under
// `graphlane run --no-mount` those without it fail (hidden_io.h).
#pragma once

#include <cstdint>

namespace graphlane {

inline constexpr uint32_t kSetupCookie = 0x676c6f77;

}  // namespace graphlane
