#include "graphfmt/grid/grid_requests.h"

namespace graphlane::graphfmt {
namespace {

// Whole pages, and whole edges: 12288 = 3 * 4096 = 1024 * 12.
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kWeightedPageBytes = 12288;
static_assert(kGridRequestMax % kPageBytes == 0 && kGridRequestMax % kWeightedPageBytes == 0);

}  // namespace

RequestSizes grid_requests(std::span<const int64_t> offsets, bool weighted) {
  const uint64_t page = weighted ? kWeightedPageBytes : kPageBytes;
  RequestSizes sizes;
  uint64_t asked = 0;  // the file's bytes up to here have been asked for
  for (const int64_t block_end : offsets.subspan(offsets.empty() ? 0 : 1)) {
    const auto end = static_cast<uint64_t>(block_end);
    // A block that came with the last page of the one before costs no request.
    if (end <= asked) continue;
    const uint64_t whole = (end - asked) / kGridRequestMax;
    sizes.add(kGridRequestMax, whole);
    asked += whole * kGridRequestMax;
    const uint64_t rest = (end - asked + page - 1) / page * page;
    if (rest > 0) sizes.add(rest);
    asked += rest;
  }
  return sizes;
}

}  // namespace graphlane::graphfmt
