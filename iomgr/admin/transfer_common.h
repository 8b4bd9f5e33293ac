// What import and export share (transfer.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "iomgr/admin/salvage.h"
#include "iomgr/admin/transfer.h"
#include "iomgr/base/files/tree.h"
#include "iomgr/base/process/progress.h"

namespace graphlane {

// One import or export under way: its files add to `summary`.
struct TransferState {
  Progress* progress = nullptr;
  TransferSummary summary;
  std::map<std::string, std::vector<MissingRange>> missing = {};  // by the path of the copy, of salvaged files
};

// Reads a range of a plain file. An end before that is an error: the file has
// changed.
Outcome<void> read_source(int fd, const TreePlace& place, ByteRange range, char* buffer);

// The first offset from `offset` on where the file has data, as lseek(2) tells.
uint64_t next_data_offset(int fd, uint64_t offset, uint64_t size_bytes);

// An error if the file's size or time is not what it was when it was listed.
Outcome<void> check_unchanged(int fd, const TreePlace& place, const struct stat& listed);

// Copies a plain file as a plain file, with its attributes and its holes.
Outcome<void> copy_plain(int from_fd, const TreePlace& from, const struct stat& info,
                         const TreePlace& to, TransferState* state);

// Makes the file `to` with `size_bytes`, for us alone as yet.
Outcome<Fd> create_file(const TreePlace& to, uint64_t size_bytes);

// The bytes in regular files, those with several names once.
uint64_t total_bytes(const std::vector<TreeNode>& nodes);

// A path as cp understands it: "dir/." means what is in dir.
struct CopyPath {
  std::string path;  // without a slash, or "/.", at the end
  bool contents = false;
  bool slash = false;  // ended in a slash: can only be a directory
};
CopyPath parse_copy_path(std::string path);

}  // namespace graphlane
