// check_volume: does what the stubs say agree with what lies on the devices?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iomgr/volume.h"

namespace graphlane {

struct CheckReport {
  uint64_t striped_count = 0;
  uint64_t plain_count = 0;
  uint64_t bytes = 0;                 // logical, of the striped files
  std::vector<std::string> problems;  // one line each, naming the culprit
  std::vector<std::string> repaired;  // what `repair` mended, one line each
};

struct CheckOptions {
  // Closes files in state `open` with the size that their parts have, and
  // removes parts that no stub names. Never touches another volume's parts.
  bool repair = false;
  bool scrub = false;  // also read every byte of every part
};

Outcome<CheckReport> check_volume(const Volume& volume, const CheckOptions& options);

}  // namespace graphlane
