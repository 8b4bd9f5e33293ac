// WriteLink: a process that writes a striped file's parts itself (iomgr/server/server_protocol.h,
// "Writing"). It lasts while no other process has the file open. The process's own handle is open
// in the kernel.
//
// Threads: the part server's own.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fuse/ops/filesystem.h"
#include "iomgr/server/file_server.h"
#include "iomgr/server/server_protocol.h"
#include "iomgr/volume/parts/live_file.h"

namespace graphlane {

class WriteLink final : public FileServer::Link {
 public:
  // Takes over a look-up of the inode. `parts` is opened for writing only, because the right to
  // write does not imply the right to read. Null: the file is not open for writing here, and the
  // caller keeps the look-up.
  static std::unique_ptr<WriteLink> open(Filesystem& fs, Inode& inode, const Layout& layout,
                                         const struct stat& stub, std::vector<Fd>* parts);
  ~WriteLink() override;
  WriteLink(const WriteLink&) = delete;
  WriteLink& operator=(const WriteLink&) = delete;

  bool serve(int connection) override;

 private:
  WriteLink(Filesystem& fs, Inode& inode, LiveFiles::Writer live)
      : fs_(fs), inode_(inode), live_(std::move(live)) {}
  WriteReply begin(const WriteBegin& asked);
  WriteReply end(const WriteEnd& told);
  bool has_set_id_bits() const;
  void drop_pages(ByteRange range) const;
  WriteReply reply(int error) const;

  Filesystem& fs_;
  Inode& inode_;
  const LiveFiles::Writer live_;
  ByteRange range_;  // of the write in progress
  std::optional<LiveFile::OutsideWrite> write_;
};

}  // namespace graphlane
