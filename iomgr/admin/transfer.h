// Files into a volume and out of it.
//
// Crash rule (FORMAT.md): the parts are written and synced first, the stub is
// renamed into place last; an import is built below .graphlane/tmp, and appears
// in the volume when all of it is there (tree.h). An error or an interrupt
// (base/interrupt.h) removes what was built. A killed import leaves it to check_volume() with
// repair; what was in the volume before is untouched in either case.
//
// Directories are copied as `cp -a` copies them: symbolic links as links, hard
// links as hard links, special files anew; owner, mode, times and extended
// attributes are kept as far as the kernel lets us. The source itself is
// followed if it is a link. An existing directory of the same name is merged
// with, and keeps its own mode; "DIR/." means what is in DIR.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "iomgr/base/files/tree.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

struct ImportOptions {
  std::string source = {};  // a file, or a directory, taken with all below it
  std::string destination = {};  // below the volume's root, "" for the root itself; cp's rules
  const TreePlace* place = nullptr;  // in place of that: there, where nothing is, be it Graphlane's own
  uint64_t stripe_depth_bytes = 0;  // 0: the volume's; else no striped file may be smaller
  // In place of that, the depth of each file that becomes striped, by its path.
  std::function<Outcome<uint64_t>(const std::string& path)> choose_depth = {};
  bool overwrite = false;           // replace files that are there
  // Which files become striped; a single file named as source always is,
  // unless it is empty. Default: the volume's policy.
  const StripePolicy* policy = nullptr;
};

// A copy that lacks bytes of the file (salvage.h).
struct SalvagedFile {
  std::string shown;
  std::string list_shown;  // the file that says which
  uint64_t missing_bytes = 0;
  uint64_t range_count = 0;
};

struct TransferSummary {
  uint64_t striped_count = 0;
  uint64_t plain_count = 0;
  uint64_t bytes = 0;
  std::vector<SalvagedFile> salvaged = {};
};

Outcome<TransferSummary> import_files(const Volume& volume, const ImportOptions& options);

struct ExportOptions {
  std::string source = {};       // below the volume's root
  std::string destination = {};  // a file or directory outside; cp's rules
  bool overwrite = false;
  // Damaged files, too, as far as they are there: zeros for what is missing, and beside the copy
  // NAME.missing, which lists it. Not a file whose parts belong to another user.
  bool salvage = false;
};

Outcome<TransferSummary> export_files(const Volume& volume, const ExportOptions& options);

// Removes a file or, with `recursive`, a tree: stub first, then the parts.
Outcome<void> remove_files(const Volume& volume, const std::string& path, bool recursive);

}  // namespace graphlane
