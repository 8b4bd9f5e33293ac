// The requests of GridGraph's stream_edges for one sweep over `row` or `column`.
#pragma once

#include <cstdint>
#include <span>

#include "graphfmt/request_sizes.h"

namespace graphlane::graphfmt {

inline constexpr uint64_t kGridRequestMax = 24u << 20;

// `offsets` is the table: where each block begins, and the end.
RequestSizes grid_requests(std::span<const int64_t> offsets, bool weighted);

}  // namespace graphlane::graphfmt
