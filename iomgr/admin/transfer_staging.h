// Copies in the making below .graphlane/tmp, on their way into the volume: by an import, and by a
// change of a file's kind (kind_change.h).
#pragma once

#include <sys/stat.h>

#include <utility>

#include "iomgr/admin/transfer_common.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

// A private directory below .graphlane/tmp; the destructor removes it.
class StagingDirectory {
 public:
  static Outcome<StagingDirectory> create(const Volume& volume);
  StagingDirectory(StagingDirectory&& other) noexcept
      : volume_(std::exchange(other.volume_, nullptr)), own_(std::move(other.own_)) {}
  ~StagingDirectory();
  TreePlace top() const { return own_.at("top"); }
  void keep() { volume_ = nullptr; }

 private:
  StagingDirectory(const Volume& volume, TreePlace own) : volume_(&volume), own_(std::move(own)) {}
  const Volume* volume_;
  TreePlace own_;
};

// Makes striped files from plain ones. Their parts are marked `making` until sync().
//
// Threads: one at a time.
class StripedCopies {
 public:
  StripedCopies(const Volume& volume, TransferState* state);

  // Makes `to` from the open plain file, with its attributes. After an error nothing is left.
  Outcome<void> add(int fd, const TreePlace& from, const struct stat& info, const TreePlace& to,
                    uint64_t stripe_depth_bytes);
  // Makes the parts of all durable, and clears `making`. The stubs must be durable before it.
  Outcome<void> sync() { return unsynced_.sync(); }

 private:
  Outcome<void> write_parts(int fd, const TreePlace& from, const struct stat& info,
                            const Layout& layout, int stub_fd);
  Outcome<void> write_stub(int like_fd, const TreePlace& to, const Layout& layout, int stub_fd);

  const Volume& volume_;
  TransferState& state_;
  uint32_t next_first_device_;  // starts at random, so that single files are balanced too
  UnsyncedParts unsynced_;
};

}  // namespace graphlane
