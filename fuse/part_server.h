// PartServer: answers the preload library's questions for a file's parts, lets it write
// them, and lets several processes share what they read (../iomgr/server_protocol.h). Every
// mount has one.
//
// A client proves that it may read or write the file by sending a descriptor of it. What
// kind of descriptor that is, is looked at without asking its filesystem: it may
// be a stranger's FUSE that never answers.
//
// Threads: one of its own; start() and the end belong to the session's owner.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "fuse/filesystem.h"
#include "fuse/share_links.h"
#include "fuse/write_link.h"

namespace graphlane {

class PartServer {
 public:
  // `device`: st_dev of the files of this mount.
  static Outcome<std::unique_ptr<PartServer>> start(Filesystem& fs, dev_t device);
  ~PartServer();
  PartServer(const PartServer&) = delete;
  PartServer& operator=(const PartServer&) = delete;

  // The value of kServerXattr.
  const std::string& name() const { return name_; }

 private:
  struct Answer;

  PartServer(Filesystem& fs, dev_t device) : fs_(fs), device_(device) {}
  void run();
  std::unique_ptr<WriteLink> serve(Fd& connection, bool link_possible);
  Answer answer(int file_fd, uint32_t question, bool link_possible, pid_t process) const;
  // Of a striped file of this volume, with its stub's attributes; else none.
  std::optional<Layout> layout_of(Inode& inode, struct stat* st) const;
  // `stub`, if not null, gets its attributes.
  Answer answer_reader(Inode& inode, struct stat* stub = nullptr) const;
  Answer answer_writer(Inode& inode) const;
  Answer answer_sharer(Inode& inode, pid_t process) const;
  void tidy();

  Filesystem& fs_;
  const dev_t device_;
  std::string name_;
  Fd listening_;
  Fd stopping_;  // eventfd
  ShareLinks share_links_;
  std::thread thread_;
};

}  // namespace graphlane
