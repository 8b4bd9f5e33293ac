// Reports damage that a read has found, once for each block: to a daemon's log, or to a tool's
// stderr.
#pragma once

#include "iomgr/volume/sum/part_sums.h"

namespace graphlane {

// Reports by log_line() from now on, in this process.
void log_sum_failures();

}  // namespace graphlane
