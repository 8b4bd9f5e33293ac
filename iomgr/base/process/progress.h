// Progress of long work: a bar on a terminal, plain lines elsewhere, nothing for work of less than a
// second. A plain line comes after 5 s, then ever more rarely, at last every 5 minutes.
//
// Threads: add() from any thread; the rest from the thread that made it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "iomgr/base/mutex.h"

namespace graphlane {

struct ProgressState {
  std::string label;
  uint64_t total = 0;  // 0: unknown
  bool unit_is_bytes = true;
  uint64_t done = 0;
  double seconds = 0;
};

// One line without its end: what is done, of what, how fast, and how long the rest takes at this
// speed. On a terminal (`columns` > 0) with a bar, and shorter than `columns`: the bar, the speed and
// the amounts are left out, in this order, until it fits.
std::string progress_line(const ProgressState& state, size_t columns);
// From one plain line to the next.
std::chrono::milliseconds plain_line_interval(std::chrono::milliseconds elapsed);

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

  const ProgressState begin_;
  const bool on_terminal_;
  const std::chrono::steady_clock::time_point start_;
  std::atomic<uint64_t> done_{0};
  std::atomic<int64_t> next_print_ms_;
  Mutex mu_;
  bool printed_ GUARDED_BY(mu_) = false;
};

}  // namespace graphlane
