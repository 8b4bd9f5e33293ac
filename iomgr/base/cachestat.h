// cachestat(2) of Linux 6.5, which libc's headers do not have.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <optional>

namespace graphlane {

struct PagesCached {
  uint64_t cached;
  uint64_t all;
};

// How many of the pages that [offset, offset + length) touches are in the page cache. Nothing:
// unknown, before Linux 6.5 or without write permission on the file.
inline std::optional<PagesCached> pages_cached(int fd, uint64_t offset, uint64_t length_bytes) {
  constexpr long kCachestat = 451;  // on all architectures
  const struct {
    uint64_t offset, length_bytes;
  } range{offset, length_bytes};
  struct {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
  } found{};
  if (::syscall(kCachestat, fd, &range, &found, 0u) != 0) return {};
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return PagesCached{.cached = found.cached,
                     .all = (offset + length_bytes + page - 1) / page - offset / page};
}

}  // namespace graphlane
