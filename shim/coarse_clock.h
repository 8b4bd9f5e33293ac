// Milliseconds since some moment, to a few; no system call.
//
// Threads: safe from any; from signal handlers, too.
#pragma once

#include <cstdint>
#include <ctime>

namespace graphlane {

inline int64_t now_ms() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace graphlane
