// Calibration: the number of I/Os in flight that serves a device best. `graphlane calibrate`
// measures it and keeps it in the device's device.json (FORMAT.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "iomgr/base/error.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

struct Calibration {
  uint32_t depth = 0;                 // I/Os in flight: 1 .. kQueueDepthMax
  uint32_t stream_count = 0;          // the best number of sequential streams, at least 1
  uint64_t bytes_per_second = 0;      // of large reads, with these two
  uint64_t small_ios_per_second = 0;  // random reads of 4096 bytes, at this depth
};

// Nothing: the device was never calibrated. `path` is the file's name in messages.
Outcome<std::optional<Calibration>> parse_calibration(const std::string& device_json,
                                                      std::string_view path);

// Replaces the calibration in device.json, and keeps all other members.
Outcome<std::string> with_calibration(const std::string& device_json, std::string_view path,
                                      const Calibration& calibration);

// The number of I/Os that a lane keeps in flight, and the reason for it.
struct LaneDepth {
  enum Source { kUser, kCalibration, kDisk, kDefault };
  uint32_t io_count = 0;
  Source source = kDefault;
};

// `asked`: the user's choice; 0: none.
Outcome<LaneDepth> lane_depth(const Device& device, uint32_t asked);

const char* name_of(LaneDepth::Source source);

}  // namespace graphlane
