// check_volume: does what the stubs say agree with what lies on the devices?
//
//   stubs ──names──► parts       every part there, of the right size
//   parts ──named by──► stubs    else an orphan: of a dead import, or of a stub
//                                that was removed with rm(1)
//
// Holds the volume's lock while it compares, so that an import under way does
// not look like a dead one: EBUSY if there is one.
#pragma once

#include <cstdint>
#include <optional>
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
  std::optional<Error> stopped;       // what ended it before it was through, as an interrupt does
};

struct CheckOptions {
  // Closes files in state `open` with the size that their parts have, cuts parts
  // that are longer than their file, removes what dead imports left and parts
  // that no stub names. Such parts stay while the volume holds a damaged stub,
  // which may be the one that named them; so does whatever is not a part. Never
  // touches another volume's parts, those that two stubs name, or those that the
  // stub's owner does not own.
  bool repair = false;
  bool scrub = false;  // also read every byte of every part, from its device
};

// What is in `repaired` is not in `problems`.
Outcome<CheckReport> check_volume(const Volume& volume, const CheckOptions& options);

}  // namespace graphlane
