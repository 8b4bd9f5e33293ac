// Damage that a read has met, told on stderr: once for each block.
#pragma once

namespace graphlane {

void tell_sum_failures();

}  // namespace graphlane
