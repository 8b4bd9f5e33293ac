// Scrub: reads every byte of a striped file's parts from the devices, and compares it with its checksum.
//
// The file may be read and written meanwhile: what has changed since its last close has no checksum that holds, and is
// counted as unverified.
//
// Threads: scrub_part() is safe from any.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "iomgr/volume/sum/pace.h"
#include "iomgr/admin/scrub_state.h"
#include "iomgr/base/error.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/volume/sum/verify.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

// A striped file to be scrubbed.
struct ScrubFile {
  std::string shown;
  Layout layout;
};

struct PartScrub {
  SumCounts blocks;
  bool has_sums = false;
  std::vector<std::string> problems;  // one line each: the file, the device, where in each
};

// How a device's parts are read.
struct ScrubPace {
  Pace* pace = nullptr;           // null: as fast as it goes
  ScrubState* state = nullptr;    // null: no later scrub goes on here
  uint64_t from_part_offset = 0;  // multiple of 4096
};

// The part of one device. A part that is not there has no problem here.
PartScrub scrub_part(const Volume& volume, const ScrubFile& file, uint32_t device_index, Progress* progress,
                     const ScrubPace& how = {});

}  // namespace graphlane
