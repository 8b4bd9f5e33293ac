// Damage that a read has met, told in the log of a daemon or on the stderr of a tool: once for each block.
#pragma once

#include "iomgr/volume/sum/part_sums.h"

namespace graphlane {

// From now on, in this process: by log_line().
void log_sum_failures();

}  // namespace graphlane
