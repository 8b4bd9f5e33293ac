// Runs fio(1) to measure reads of a file past the page cache.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "iomgr/base/error.h"

namespace graphlane::cli {

struct FioReads {
  std::string file;
  uint64_t file_bytes = 0;
  uint64_t block_bytes = 0;
  bool at_random = false;     // false: sequentially
  uint32_t depth = 1;         // reads in flight, over all streams
  uint32_t stream_count = 1;  // each reads its own share of the file
  std::chrono::milliseconds duration{1000};
};

struct FioSpeed {
  double bytes_per_second = 0;
  double ios_per_second = 0;
};

// ENOENT: there is no fio in $PATH.
Outcome<void> check_fio();

// An interrupt (base/interrupt.h) ends fio.
Outcome<FioSpeed> run_fio(const FioReads& reads);

}  // namespace graphlane::cli
