// ExtentFile: a file as the cache of large reads sees it: one generation, in frames of 1 MiB.
#pragma once

#include <algorithm>
#include <cstdint>

#include "iomgr/base/uuid.h"
#include "iomgr/cache/cache.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

inline constexpr uint64_t kExtentFrameBytes = 1 << 20;

struct ExtentFile {
  Uuid file_id;
  uint64_t generation = 0;  // changes with the bytes
  uint64_t size_bytes = 0;
  const StripeMap& map;
  const PartFiles& parts;

  FrameKey key(uint64_t frame_index) const {
    return {.file_id = file_id, .generation = generation, .frame_index = frame_index};
  }
  // The frame's bytes; the last frame is rounded up to a whole block, for direct I/O.
  ByteRange frame_range(uint64_t frame_index) const {
    const uint64_t offset = frame_index * kExtentFrameBytes;
    return {.offset = offset,
            .length_bytes = std::min(kExtentFrameBytes, round_up(size_bytes - offset, kBlockSize))};
  }
};

}  // namespace graphlane
