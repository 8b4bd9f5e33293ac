// Common parts of import and export (transfer.h).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "iomgr/admin/salvage.h"
#include "iomgr/admin/transfer.h"
#include "iomgr/base/files/tree.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/volume/parts/striped_file.h"

namespace graphlane {

// An import or export in progress: its files add to `summary`.
struct TransferState {
  Progress* progress = nullptr;
  TransferSummary summary;
  // of salvaged files, by the copy's path
  std::map<std::string, std::vector<MissingRange>> missing = {};
  // Called before each read of a chunk, from several threads; an error ends the copy.
  std::function<Outcome<void>()> go_on = {};

  Outcome<void> check_wanted() const { return go_on ? go_on() : Outcome<void>(); }
};

// Reads a range of a plain file. EOF before its end is an error: the file has changed.
Outcome<void> read_source(int fd, const TreePlace& place, ByteRange range, char* buffer);

// The first offset from `offset` on where the file has data, as lseek(2) tells.
uint64_t next_data_offset(int fd, uint64_t offset, uint64_t size_bytes);

// An error if the file's size or time has changed since it was listed.
Outcome<void> check_unchanged(int fd, const TreePlace& place, const struct stat& listed);

// Copies a plain file as a plain file, with its attributes and its holes.
Outcome<void> copy_plain(int from_fd, const TreePlace& from, const struct stat& info,
                         const TreePlace& to, TransferState* state);

// Makes the plain file `to` from an open striped one, with the attributes of its stub.
Outcome<void> copy_striped(const Volume& volume, const StripedFile& file, int stub_fd,
                           const TreePlace& to, TransferState* state);

// Makes the file `to` with `size_bytes`, for this user only at first.
Outcome<Fd> create_file(const TreePlace& to, uint64_t size_bytes);

// The bytes in regular files; a file with several names counts once.
uint64_t total_bytes(const std::vector<TreeNode>& nodes);

// A path in cp's notation: "dir/." means the content of dir.
struct CopyPath {
  std::string path;  // without "/" or "/." at the end
  bool contents = false;
  bool slash = false;  // ended in a slash: must be a directory
};
CopyPath parse_copy_path(std::string path);

}  // namespace graphlane
