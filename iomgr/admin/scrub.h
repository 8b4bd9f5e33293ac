// Scrub: reads every byte of a striped file's parts from the devices, and compares the checksums.
//
// The file may be read and written meanwhile. Bytes that changed since its last close have no valid
// checksum, and count as unverified.
//
// Threads: scrub_part() is safe from any.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "iomgr/admin/scrub_state.h"
#include "iomgr/base/error.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/volume/sum/pace.h"
#include "iomgr/volume/sum/verify.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

// A striped file to scrub.
struct ScrubFile {
  std::string shown;
  Layout layout;
};

struct PartScrub {
  SumCounts blocks;
  bool has_sums = false;
  std::vector<std::string> problems;  // one line each: the file, the device, and the places in both
};

// How a device's parts are read.
struct ScrubPace {
  Pace* pace = nullptr;           // null: no limit
  ScrubState* state = nullptr;    // null: the progress is not kept
  uint64_t from_part_offset = 0;  // multiple of 4096
};

// Scrubs the part of one device. A missing part is no problem here.
PartScrub scrub_part(const Volume& volume, const ScrubFile& file, uint32_t device_index,
                     Progress* progress, const ScrubPace& how = {});

}  // namespace graphlane
