// The times of files, in nanoseconds since 1970.
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace graphlane {

constexpr int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}
constexpr int64_t nanoseconds(const statx_timestamp& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

}  // namespace graphlane
