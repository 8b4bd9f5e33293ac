// Calibration: how many I/Os in flight serve a device best, as `graphlane calibrate`
// measured it and keeps it in the device's device.json (FORMAT.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "iomgr/base/error.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

struct Calibration {
  uint32_t depth = 0;         // I/Os in flight: 1 .. kQueueDepthMax
  uint32_t stream_count = 0;  // sequential streams, at least 1, that they best belong to
  uint64_t bytes_per_second = 0;      // of large reads, so
  uint64_t small_ios_per_second = 0;  // of 4096 bytes at random, at this depth
};

// Nothing: the device was never calibrated. `path` is what messages call the file.
Outcome<std::optional<Calibration>> parse_calibration(const std::string& device_json,
                                                      std::string_view path);

// The same device.json with this calibration; all else in it stays.
Outcome<std::string> with_calibration(const std::string& device_json, std::string_view path,
                                      const Calibration& calibration);

// How many I/Os a lane keeps in flight, and who says so.
struct LaneDepth {
  enum Source { kUser, kCalibration, kDisk, kDefault };
  uint32_t io_count = 0;
  Source source = kDefault;
};

// `asked`: by the user; 0: not at all.
Outcome<LaneDepth> lane_depth(const Device& device, uint32_t asked);

const char* name_of(LaneDepth::Source source);

}  // namespace graphlane
