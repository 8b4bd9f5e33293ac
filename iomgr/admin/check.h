// check_volume: does what the stubs say agree with what lies on the devices?
//
//   stubs ──names──► parts       every part there, of the right size
//   parts ──named by──► stubs    else an orphan (orphans.h): of a dead import, of a stub that was
//                                removed with rm(1), or of one that is elsewhere for now
//
// Holds the volume's lock while it compares, so that an import under way does
// not look like a dead one: EBUSY if there is one.
//
// Repairs delete no data. An orphan's stub may return: its folder may have been moved out, its
// filesystem may not be mounted, and this directory may be a copy of the volume's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "iomgr/admin/orphans.h"
#include "iomgr/volume/sum/verify.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

struct CheckReport {
  uint64_t striped_count = 0;
  uint64_t plain_count = 0;
  uint64_t bytes = 0;                 // logical, of the striped files
  std::vector<std::string> problems;  // one line each, naming the culprit
  std::vector<std::string> repaired;  // what `repair` mended, one line each
  std::vector<std::string> open;      // files that were not closed, and whole: one line each
  SumCounts scrubbed;                 // blocks of the striped files, if `scrub`
  std::set<std::string> without_sums;  // files of which a part has no checksums, if `scrub`
  std::vector<Orphan> orphans;        // those that remain
  // Why no orphan may be deleted: a stub that could not be read, or a folder, may name it. Empty: they may.
  std::string orphans_kept;
  std::optional<Error> stopped;       // what ended it before it was through, as an interrupt does
};

struct CheckOptions {
  // Closes files in state `open` with the size that their parts have, and cuts parts that are longer
  // than their file. Removes what dead imports left; makes orphans readable in VOL/lost+found. Never
  // touches another volume's parts, those that two stubs name, those that the stub's owner does
  // not own, or a file that is damaged.
  bool repair = false;
  bool scrub = false;  // also read every byte of every part, from its device, and compare the checksums
  uint64_t rate_bytes_per_second = 0;  // of a scrub, and of `checksum`: from each device; 0: no limit
  bool resume = false;                 // a scrub goes on where the last one was stopped
  bool checksum = false;               // give files without checksums theirs, and bring those up to date that are not
  // Orphans to be deleted, if they still are orphans.
  std::set<std::array<uint8_t, 16>> delete_orphans = {};
};

// A problem that is in `repaired` or in `open` is not in `problems`. An orphan that is not in
// lost+found yet is a problem.
Outcome<CheckReport> check_volume(const Volume& volume, const CheckOptions& options);

}  // namespace graphlane
