// OpenFile: the state of one file handle of the kernel.
//
// Threads: constant after open(), except for sync() and read_sizes, which are safe from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "fuse/coherence/invalidation.h"
#include "fuse/coherence/live_files.h"
#include "fuse/inode/open_handles.h"
#include "fuse/inode/passthrough.h"
#include "fuse/inode/read_sizes.h"
#include "fuse/ops/sweeps.h"
#include "iomgr/base/fd.h"
#include "iomgr/read/plan.h"

namespace graphlane::fuse {

struct OpenFile : OpenHandle {
  Fd fd;  // if it is plain
  // if it is plain: whether the kernel passes it through
  std::optional<Passthrough::Open> passthrough;
  std::shared_ptr<StripedFile> striped;  // if it is striped
  LiveFiles::Writer live;                // if it is striped and this handle may write
  ReadState state;                       // if it is striped: how it is read
  bool appends = false;                  // `fd` has O_APPEND, because chattr +a demands it
  bool direct_io = false;                // the kernel does not sync for O_SYNC: ops/write.cc does
  int access = O_RDONLY;                 // open(2)'s access mode, and O_APPEND
  size_t ticket_count = 0;               // its tickets in TicketBook, which guards this
  std::optional<Sweeps::Member> member;  // of the open striped files
  std::optional<Invalidation::Member> kept;  // of the files with pages in the kernel

  // 0: calls come to this process.
  int backing_id() const { return passthrough ? passthrough->backing_id() : 0; }

  // As fsync(2): 0 or an errno. Each handle reports an error of an earlier sync once.
  int sync(bool data_only);

  // The descriptor that carries owner, mode and times.
  int host_fd() const { return live ? live->stub_fd() : fd.get(); }

  std::atomic<uint32_t> sync_errors_told{0};  // errors of `striped` that this handle has reported
  ReadSizes read_sizes;                       // used if state.leaves_pages()

  static OpenFile& of(const fuse_file_info* fi) { return OpenHandles::of<OpenFile>(fi); }
};

}  // namespace graphlane::fuse
