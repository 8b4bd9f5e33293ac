// restripe: gives striped files another stripe depth, one after the other, in a volume that is in
// use.
//
//   old parts   AAAA ─────────────── the stub names them ─┐          removed
//   new parts        made ─ copied ─ synced ──────────────┴─ the stub names them
//                                                         │
//                                    one block, in place, while no process has the file open
//
// The stub is the file's inode and stays it: links, owner, mode, times, attributes.
// After a kill at any instruction the file is whole, in its old or its new parts. No stub names the
// others, and check_volume() with repair removes them. An error or an interrupt
// (base/interrupt.h) removes the new parts of the current file.
//
// A file can be read while it is copied, but not written (EBUSY). A file with a writer, or open at
// the instant of the change, is left unchanged, and retried at the end for a while. (stub_lock.h
// says why it must not be open.)
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iomgr/volume/volume.h"

namespace graphlane {

struct RestripeOptions {
  std::string path = {};  // a file or directory below the root; "": the volume

  uint64_t stripe_depth_bytes = 0;  // 0: the volume's, so an interrupted call goes on
  bool dry_run = false;             // changes nothing

  // A mount holds a written file for up to ten seconds after its last close.
  std::chrono::seconds patience{15};
};

struct RestripedFile {
  std::string shown;
  uint64_t bytes = 0;
  StripeGeometry from, to;
};

struct RestripeReport {
  std::vector<RestripedFile> changed;  // with dry_run: the files to change

  uint64_t kept_count = 0;       // had the depth already
  std::vector<Error> left;       // one line per file that failed; the others went on
  std::optional<Error> stopped;  // ended the work early, e.g. an interrupt
};

// Without a path the depth also becomes the volume's, before the first file is changed. If it
// returns an error, no file was changed; a report has the errors of single files.
Outcome<RestripeReport> restripe_files(const Volume& volume, const RestripeOptions& options);

}  // namespace graphlane
