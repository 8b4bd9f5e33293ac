// HostHandles: the host's file handles as 64-bit numbers, which outlive every descriptor.
//
//   host's handle   | ino | generation |      ext4, f2fs: 8 bytes
//                   | ino | 0 | gener. |      xfs: 12 bytes
//                   | gen | ino | 0    |      tmpfs: 12 bytes
//   number          the 8 bytes that differ between files
//
// By that number the kernel finds a file again (open_by_handle_at), even after a restart of the
// daemon. Only the host knows the meaning of the bytes. Whether they fit 8 bytes is probed at the
// volume's root and checked for every file.
//
// Constant after construction; needs CAP_DAC_READ_SEARCH, else usable() is false.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>

#include "iomgr/base/fd.h"
#include "iomgr/base/result.h"

namespace graphlane::fuse {

class HostHandles {
 public:
  // `root_fd`, the volume's, is borrowed.
  explicit HostHandles(int root_fd);

  bool usable() const { return usable_; }

  // None: the file is on another filesystem, or its handle does not fit.
  std::optional<uint64_t> number_of(int path_fd, const struct stat& st) const;

  // An O_PATH descriptor. ESTALE: the file was removed. The file may lie outside the root.
  Result<Fd> open(uint64_t number) const;

  bool is_below_root(int directory_fd) const;

 private:
  const int root_fd_;
  struct stat root_ = {};
  int type_ = 0;
  unsigned byte_count_ = 0;
  unsigned second_word_ = 1;  // index of the word that is used beside word 0
  bool usable_ = false;
};

}  // namespace graphlane::fuse
