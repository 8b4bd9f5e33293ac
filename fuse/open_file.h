// OpenFile: what a file handle of the kernel's stands for.
//
// Threads: constant after open().
#pragma once

#include <memory>
#include <optional>

#include "fuse/fuse_api.h"
#include "fuse/passthrough.h"
#include "iomgr/base/fd.h"
#include "iomgr/live_file.h"

namespace graphlane {

struct OpenFile {
  Fd fd;                                // a plain file
  std::optional<Passthrough::Open> way;  // … and how the kernel goes about it
  std::shared_ptr<StripedFile> striped;  // or a striped one
  std::shared_ptr<LiveFile> live;        // the same, if this handle may write
  bool direct = false;                   // its parts are read past the page cache
  bool appends = false;                  // `fd` does, because the file allows nothing else

  // What carries the file's owner, mode and times.
  int host_fd() const { return live ? live->stub_fd() : fd.get(); }

  static OpenFile& of(const fuse_file_info* fi) { return *reinterpret_cast<OpenFile*>(fi->fh); }
  static void give(std::unique_ptr<OpenFile> file, fuse_file_info* fi) {
    fi->fh = reinterpret_cast<uint64_t>(file.release());
  }
};

}  // namespace graphlane
