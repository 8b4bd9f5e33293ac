// restripe: striped files get another stripe depth, one after the other, in a
// volume that is in use.
//
//   old parts   AAAA ─────────────── the stub names them ─┐          removed
//   new parts        made ─ copied ─ synced ──────────────┴─ the stub names them
//                                                         │
//                                    one block, in place, while nobody has the file open
//
// The stub is the file's inode and stays it: links, owner, mode, times, attributes.
// Killed at any instruction the file is whole, in its old or its new parts; the
// others no stub names, and check_volume() with repair removes them. An error or an
// interrupt (base/interrupt.h) removes the new parts of the file at hand.
//
// While a file is copied it can be read, but not be written (EBUSY). One that
// somebody writes, or has open at the instant of the change, is left as it is, and
// tried again at the end for a while (stub_lock.h says why nobody may have it open).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iomgr/volume/volume.h"

namespace graphlane {

struct RestripeOptions {
  std::string path = {};            // a file or directory below the root; "": the volume
  uint64_t stripe_depth_bytes = 0;  // 0: the volume's, so what was interrupted goes on
  bool dry_run = false;             // only look
  // A mount holds a file that was written for up to ten seconds after its writer has gone.
  std::chrono::seconds patience{15};
};

struct RestripedFile {
  std::string shown;
  uint64_t bytes = 0;
  StripeGeometry from, to;
};

struct RestripeReport {
  std::vector<RestripedFile> changed;  // with dry_run: would be
  uint64_t kept_count = 0;             // were as they should be
  std::vector<Error> left;             // what was not done to a file, one line each; the others went on
  std::optional<Error> stopped;        // what ended it before the last, as an interrupt does
};

// Without a path the depth also becomes the volume's, before the first file is
// changed. An error, other than a report's: no file was changed.
Outcome<RestripeReport> restripe_files(const Volume& volume, const RestripeOptions& options);

}  // namespace graphlane
