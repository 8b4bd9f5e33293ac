// Import and export: files into a volume and out of it.
//
// Crash rule (FORMAT.md): the parts are written and synced first, and the stub is renamed into
// place last. An import is built below .graphlane/tmp, and appears in the volume when it is
// complete (tree.h). An error or an interrupt (base/interrupt.h) removes it. After a kill,
// check_volume() with repair removes it. What was in the volume before stays unchanged.
//
// Directories are copied as `cp -a` copies them: links as links, special files anew. Owner, mode,
// times and extended attributes are kept as far as the kernel permits. A link given as the source
// is followed. The copy merges into an existing directory of the same name, which keeps its own
// mode. "DIR/." means the content of DIR.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "iomgr/base/files/tree.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

struct ImportOptions {
  std::string source = {};       // a file, or a directory with all below it
  std::string destination = {};  // below the volume's root, "" for the root itself; cp's rules

  // Replaces `destination`: a place without a file, perhaps in Graphlane's own directory.
  const TreePlace* place = nullptr;

  uint64_t stripe_depth_bytes = 0;  // 0: the volume's, the least size of a striped file
  // Replaces stripe_depth_bytes: the depth of each striped file, by its path.
  std::function<Outcome<uint64_t>(const std::string& path)> choose_depth = {};
  bool overwrite = false;  // replaces existing files
  // Which files become striped; a single nonempty file named as source always is. Default: the
  // volume's policy.
  const StripePolicy* policy = nullptr;
};

// A copy that lacks bytes of the file (salvage.h).
struct SalvagedFile {
  std::string shown;
  std::string list_shown;  // the list of missing ranges
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
  // Exports damaged files, too: with zeros for missing bytes, and a list NAME.missing beside the
  // copy. Not for files with parts of another user.
  bool salvage = false;
};

Outcome<TransferSummary> export_files(const Volume& volume, const ExportOptions& options);

// Removes a file or, with `recursive`, a tree: the stub first, then the parts.
Outcome<void> remove_files(const Volume& volume, const std::string& path, bool recursive);

}  // namespace graphlane
