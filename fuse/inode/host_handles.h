// HostHandles: a file of the host as a number that outlives every descriptor.
//
//   host's handle   | ino | generation |      ext4, f2fs: 8 bytes
//                   | ino | 0 | gener. |      xfs: 12 bytes
//                   | gen | ino | 0    |      tmpfs: 12 bytes
//   number          the 8 bytes that differ from file to file
//
// So the kernel can find a file again by the number that it was given once
// (open_by_handle_at), also after the daemon was started again. What the bytes
// mean is the host's affair; that they fit is seen at the volume's root, and
// checked for every file.
//
// Constant after construction; needs CAP_DAC_READ_SEARCH, else usable() is false.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>

#include "iomgr/base/fd.h"
#include "iomgr/base/result.h"

namespace graphlane {

class HostHandles {
 public:
  // `root_fd`, the volume's, is borrowed.
  explicit HostHandles(int root_fd);

  bool usable() const { return usable_; }

  // Nothing: a file of another filesystem, or a handle that does not fit.
  std::optional<uint64_t> number_of(int path_fd, const struct stat& st) const;

  // An O_PATH descriptor. ESTALE: the file is gone. It need not be below the root.
  Result<Fd> open(uint64_t number) const;

  bool is_below_root(int directory_fd) const;

 private:
  const int root_fd_;
  struct stat root_ = {};
  int type_ = 0;
  unsigned byte_count_ = 0;
  unsigned second_word_ = 1;  // the other one that counts beside the first
  bool usable_ = false;
};

}  // namespace graphlane
