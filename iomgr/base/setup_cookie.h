// The third argument of this project's io_uring_setup(2) and io_setup(2) calls; the kernel ignores
// it. Under `graphlane run --no-mount` calls without it fail (hidden_io.h).
#pragma once

#include <cstdint>

namespace graphlane {

inline constexpr uint32_t kSetupCookie = 0x676c6f77;

}  // namespace graphlane
