#include "adapters/share/schedule/units.h"

#include <algorithm>

namespace graphlane::share {
namespace {

constexpr uint64_t kUnitBytesMin = uint64_t{1} << 20;
constexpr uint64_t kCutsMax = uint64_t{1} << 16;

}  // namespace

Units::Units(std::span<const uint64_t> partition_bytes, uint64_t unit_bytes)
    : unit_bytes_(unit_bytes) {
  first_.reserve(partition_bytes.size() + 1);
  for (uint32_t p = 0; p < partition_bytes.size(); ++p) {
    uint64_t rest = partition_bytes[p];
    do {
      bytes_.push_back(std::min(rest, unit_bytes));
      partition_.push_back(p);
      rest -= bytes_.back();
    } while (rest > 0);
    first_.push_back(count());
  }
}

uint32_t Units::unit_at(uint32_t partition, uint64_t offset) const {
  const uint64_t last = end_of(partition) - 1 - first_of(partition);
  return first_of(partition) + static_cast<uint32_t>(std::min(offset / unit_bytes_, last));
}

uint64_t unit_bytes_for(uint64_t chunk_bytes, uint64_t graph_bytes) {
  if (chunk_bytes == kUncut) return kUncut;
  const uint64_t least = std::max(kUnitBytesMin, graph_bytes / kCutsMax);
  return std::max<uint64_t>(1, (least - 1) / chunk_bytes + 1) * chunk_bytes;
}

}  // namespace graphlane::share
