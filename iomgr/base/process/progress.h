// Progress of long work: a bar on a terminal, a plain line every few seconds elsewhere, nothing for
// work of less than a second.
//
// Threads: add() from any thread; the rest from the thread that made it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "iomgr/base/mutex.h"

namespace graphlane {

class Progress {
 public:
  // `total` 0 means unknown. `unit_is_bytes` prints sizes, else plain counts.
  Progress(std::string label, uint64_t total, bool unit_is_bytes = true);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(uint64_t amount);

  // For --quiet: no Progress of this process prints anything from now on.
  static void silence();

 private:
  void print(bool last);

  const std::string label_;
  const uint64_t total_;
  const bool unit_is_bytes_;
  const bool on_terminal_;
  const std::chrono::steady_clock::time_point start_;
  std::atomic<uint64_t> done_{0};
  std::atomic<int64_t> next_print_ms_;
  Mutex mu_;
  bool printed_ GUARDED_BY(mu_) = false;
};

}  // namespace graphlane
