// RunProgress: the iterations of a run, on a terminal or as a line now and then (base/progress.h).
//
// Threads: one.
#pragma once

#include <string>

#include "iomgr/base/process/progress.h"

namespace graphlane {

class RunProgress {
 public:
  // `iterations`: how many there will be; 0: unknown.
  RunProgress(const std::string& algorithm, uint64_t iterations)
      : progress_(algorithm + ": iteration", iterations, /*unit_is_bytes=*/false) {}
  void iteration_ended() { progress_.add(1); }

 private:
  Progress progress_;
};

}  // namespace graphlane
