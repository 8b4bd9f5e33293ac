// relocate: a device of a volume gets another directory.
//
//   moved already   NEW/graphlane-<uuid> is there: a disk that is mounted elsewhere now, or a directory that was moved
//   one filesystem  the directory is renamed
//   two             it is copied below NEW under another name, synced, renamed, and then removed below the old one
//
// volume.json changes in one rename, before the old directory of a copy is removed. Killed before that, the volume is what
// it was, but for a directory that was renamed: run again, it has "moved already". What a killed copy leaves is removed
// by the next run: a copy says in `relocated-from` where it comes from, until the old directory is removed.
//
// Nobody may use the volume meanwhile: the caller holds its lock, exclusively.
#pragma once

#include <cstdint>
#include <string>

#include "iomgr/volume/volume.h"

namespace graphlane {

struct RelocateReport {
  std::string from, to;  // the device's directories
  uint64_t copied_bytes = 0;
  bool was_there = false;         // "moved already"
  bool ended_killed_run = false;  // nothing was to be done but to remove what a killed run had left
  std::string left = {};          // what could not be removed below the old directory; else empty
};

// `volume` was opened with allows_missing_devices. `device` is a directory as `graphlane info`
// shows it, or another name of that directory. EBUSY: a file is being changed.
Outcome<RelocateReport> relocate_device(const Volume& volume, const std::string& device,
                                        const std::string& to);

// EBUSY: a run that copied device `i` to where it is now was killed, and what was at the old place is still there.
Outcome<void> check_relocate_ended(const Volume& volume, uint32_t i);

}  // namespace graphlane
