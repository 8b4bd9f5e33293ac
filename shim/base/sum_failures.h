// Reports damage that a read has found, on stderr, once for each block.
#pragma once

namespace graphlane::shim {

void tell_sum_failures();

}  // namespace graphlane::shim
