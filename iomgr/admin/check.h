// check_volume: whether the stubs agree with the parts on the devices.
//
//   stubs ──names──► parts       every part exists and has the right size
//
//   parts ──named by──► stubs    otherwise an orphan (orphans.h): left by a dead import, by rm(1)
//                                on its stub, or by a stub that is elsewhere for now
//
// It holds the volume's lock while it compares, so that a running import does not look like a
// dead one: EBUSY if there is one.
//
// Repairs delete no data, because an orphan's stub may return. Its folder may have been moved out,
// its filesystem may not be mounted, and this directory may be a copy of the volume's.
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
  uint64_t bytes = 0;  // logical, of the striped files

  std::vector<std::string> problems;  // one line each, naming the culprit
  std::vector<std::string> repaired;  // repairs by `repair`, one line each
  std::vector<std::string> open;      // undamaged files that were not closed, one line each
  // Files that were renamed and have not the kind of their new name yet (volume/kind.h), one line each.
  std::vector<std::string> waiting;

  SumCounts scrubbed;                  // blocks of the striped files, if `scrub`
  std::set<std::string> without_sums;  // files with a part without checksums, if `scrub`
  std::vector<Orphan> orphans;         // those that remain

  // Why no orphan may be deleted, e.g. a folder that cannot be read may hold its stub. Empty: they
  // may be deleted.
  std::string orphans_kept;
  std::optional<Error> stopped;  // ended the check early, e.g. an interrupt
};

struct CheckOptions {
  // Closes files in state `open` with the size of their parts, and cuts parts that are longer than
  // their file. Removes leftovers of dead imports; makes orphans readable in VOL/lost+found. Gives
  // renamed files the kind of their name (kind_change.h). Never
  // touches another volume's parts, parts named by two stubs, parts that the stub's owner does not
  // own, or a damaged file.
  bool repair = false;

  // Also reads every byte of every part from its device, and compares the checksums.
  bool scrub = false;
  // Limits a scrub and `checksum`, per device; 0: no limit.
  uint64_t rate_bytes_per_second = 0;
  // Continues the last scrub where it stopped.
  bool resume = false;
  // Adds missing checksums, and updates outdated ones.
  bool checksum = false;
  // Deletes these orphans, if they still are orphans.
  // Orphans to be deleted, if they still are orphans.
  std::set<std::array<uint8_t, 16>> delete_orphans = {};
};

// An entry of `repaired` or `open` is not repeated in `problems`. An orphan without an entry in
// lost+found is a problem.
Outcome<CheckReport> check_volume(const Volume& volume, const CheckOptions& options);

}  // namespace graphlane
