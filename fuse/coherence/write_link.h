// WriteLink: a process that writes a striped file's parts itself (iomgr/server/server_protocol.h,
// "Writing"). It lasts while no other process has the file open. The process's own handle is open
// in the kernel.
//
// Threads: the part server's own.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fuse/coherence/append_page.h"
#include "fuse/ops/filesystem.h"
#include "iomgr/server/file_server.h"
#include "iomgr/server/server_protocol.h"
#include "iomgr/volume/parts/live_file.h"

namespace graphlane::fuse {

// Tells the kernel the size of a file that was extended without it. Must not be called in a request
// for which the kernel holds pages of the file.
void tell_kernel_size(Filesystem& fs, const Inode& inode, const LiveFile& live);

class WriteLink final : public FileServer::Link {
 public:
  // Takes over a look-up of the inode. `parts` is opened for writing only, because the right to
  // write does not imply the right to read. Null: the file is not open for writing here, and the
  // caller keeps the look-up. The client counts its appends in `page`.
  static std::unique_ptr<WriteLink> open(Filesystem& fs, Inode& inode, const Layout& layout,
                                         const struct stat& stub, std::vector<Fd>* parts, Fd* page);
  ~WriteLink() override;
  WriteLink(const WriteLink&) = delete;
  WriteLink& operator=(const WriteLink&) = delete;

  bool serve(int connection) override;

 private:
  WriteLink(Filesystem& fs, Inode& inode, LiveFiles::Writer live, AppendPage page)
      : fs_(fs),
        inode_(inode),
        live_(std::move(live)),
        page_(std::move(page)),
        append_(*live_, page_.progress()) {}
  WriteReply begin(const WriteBegin& asked);
  WriteReply begin_append(const AppendBegin& asked);
  WriteReply end(const WriteEnd& told);
  bool is_alone() const;
  bool may_append() const;
  void drop_pages(ByteRange range) const;
  WriteReply reply(int error) const;

  Filesystem& fs_;
  Inode& inode_;
  const LiveFiles::Writer live_;
  ByteRange range_;  // of the write in progress
  std::optional<LiveFile::OutsideWrite> write_;
  const AppendPage page_;
  LiveFile::Append append_;
  bool was_granted_ = false;
};

}  // namespace graphlane::fuse
