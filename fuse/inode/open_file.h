// OpenFile: what a file handle of the kernel's stands for.
//
// Threads: constant after open(), but for sync() and read_sizes, which any may call.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "fuse/coherence/invalidation.h"
#include "fuse/coherence/live_files.h"
#include "fuse/inode/open_handles.h"
#include "fuse/inode/passthrough.h"
#include "fuse/ops/read_sizes.h"
#include "fuse/ops/sweeps.h"
#include "iomgr/base/fd.h"

namespace graphlane {

struct OpenFile : OpenHandle {
  Fd fd;                                 // a plain file
  std::optional<Passthrough::Open> way;  // … and how the kernel goes about it
  std::shared_ptr<StripedFile> striped;  // or a striped one
  LiveFiles::Writer live;                // the same, if this handle may write
  bool direct = false;                   // its parts are read past the page cache
  bool fits = false;                     // … of theirs: the mount's own has room for all of it
  bool o_direct = false;                 // the program has asked for that
  bool in_turn = false;                  // the kernel keeps no pages of it: a read comes in pieces
  bool appends = false;                  // `fd` does, because the file allows nothing else
  bool direct_io = false;                // the kernel does not sync for O_SYNC: ops/write.cc does
  int access = O_RDONLY;                 // open(2)'s access mode, and O_APPEND
  size_t ticket_count = 0;               // of it in the TicketBook, which guards this
  std::optional<Sweeps::Member> member;  // of the striped files that are open
  std::optional<Invalidation::Member> kept;  // of those whose pages the kernel keeps

  // Whether reads may leave pages in the kernel, of a file that does not fit in memory. (Of one that is
  // read in turn, those of maps.)
  bool leaves_pages() const { return direct && !fits && !o_direct; }
  bool sweeps_page_cache() const { return leaves_pages() && !in_turn; }

  int backing_id() const { return way ? way->backing_id() : 0; }  // 0: calls come to us

  // As fsync(2): 0 or an errno. What a sync by another handle was told, this one is told once.
  int sync(bool data_only);

  // What carries the file's owner, mode and times.
  int host_fd() const { return live ? live->stub_fd() : fd.get(); }

  std::atomic<uint32_t> sync_errors_told{0};  // of `striped`
  ReadSizes read_sizes;                       // where they matter: leaves_pages()

  static OpenFile& of(const fuse_file_info* fi) { return OpenHandles::of<OpenFile>(fi); }
};

}  // namespace graphlane
