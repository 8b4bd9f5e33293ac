#include "iomgr/volume/parts/open_size.h"

#include <algorithm>

namespace graphlane {

OpenSize size_of_open(const Layout& layout, std::span<const uint64_t> part_sizes,
                      uint64_t promised_bytes) {
  const StripeMap map = layout.map();
  OpenSize open{.bytes = map.logical_size(part_sizes), .promised_bytes = promised_bytes};
  for (uint32_t d = 0; d < part_sizes.size(); ++d) {
    if (map.logical_offset({.device_index = d, .part_offset = part_sizes[d]}) == open.bytes) {
      open.short_device = d;
    }
  }
  open.bytes = std::min(open.bytes, layout.logical_size);
  open.promised_bytes = std::min(open.promised_bytes, layout.logical_size);
  return open;
}

}  // namespace graphlane
