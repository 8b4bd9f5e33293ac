// FilesystemFeatures: features that the filesystem of a device may lack. A volume works without
// them, but is slower or less sure.
//
//   O_DIRECT          reads go through the page cache
//   user attributes   a part's record is a file of its own in sums/, opened beside the part
//   birth times       a stub that was copied onto a reused inode number is not noticed
//
// Network mounts (NFS, sshfs, 9p) and ramfs lack some or all.
#pragma once

#include <string>

#include "iomgr/base/result.h"

namespace graphlane::cli {

struct FilesystemFeatures {
  bool direct_io = true;
  bool user_attributes = true;
  bool birth_times = true;
};

// Tries them on a small file that is made in the directory and removed. An errno: no file can be
// made there.
Result<FilesystemFeatures> try_filesystem(int directory_fd);

// "direct I/O and birth times"; empty: nothing is missing.
std::string missing_features(const FilesystemFeatures& features);

}  // namespace graphlane::cli
