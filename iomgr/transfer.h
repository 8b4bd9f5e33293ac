// Files into a volume and out of it.
//
// Crash rule (FORMAT.md): the parts are written and synced first, the stub is
// renamed into place last. A killed import leaves parts that no stub names,
// which check_volume() with repair removes, and the file that was there before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iomgr/lanes.h"
#include "iomgr/volume.h"

namespace graphlane {

struct ImportOptions {
  std::string source;       // a file, or a directory, taken with all below it
  std::string destination;  // below the volume's root, "" for the root itself; cp's rules
  uint64_t stripe_depth_bytes = 0;  // 0: the volume's
  bool overwrite = false;           // replace files that are there
  // Which files become striped; a single file named as source always is,
  // unless it is empty. Default: the volume's policy.
  const StripePolicy* policy = nullptr;
  LaneOptions lanes;
};

struct TransferSummary {
  uint64_t striped_count = 0;
  uint64_t plain_count = 0;
  uint64_t bytes = 0;
};

Outcome<TransferSummary> import_files(const Volume& volume, const ImportOptions& options);

struct ExportOptions {
  std::string source;       // below the volume's root
  std::string destination;  // a file or directory outside; cp's rules
  bool overwrite = false;
  LaneOptions lanes;
};

Outcome<TransferSummary> export_files(const Volume& volume, const ExportOptions& options);

// Removes a file or, with `recursive`, a tree: stub first, then the parts.
Outcome<void> remove_files(const Volume& volume, const std::string& path, bool recursive);

}  // namespace graphlane
