// PartServer: answers the preload library's questions for a file's parts, lets it write
// them, and lets several processes share what they read (iomgr/server/server_protocol.h). Every
// mount has one.
//
// A client proves that it may read or write the file by a ticket, which it has got by a
// descriptor of it (ticket_book.h).
//
// Threads: its FileServer's; start() and the end belong to the session's owner.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "fuse/ops/filesystem.h"
#include "iomgr/server/file_server.h"

namespace graphlane {

class PartServer final : private FileServer::Host {
 public:
  static Outcome<std::unique_ptr<PartServer>> start(Filesystem& fs);
  PartServer(const PartServer&) = delete;
  PartServer& operator=(const PartServer&) = delete;

  // The value of kServerXattr.
  const std::string& name() const { return name_; }

 private:
  using Answer = FileServer::Answer;
  using Question = FileServer::Question;

  explicit PartServer(Filesystem& fs) : fs_(fs) {}
  bool takes_tickets() const override { return true; }
  bool serves(dev_t) const override { return false; }  // no descriptor is looked at
  Answer answer(const Question& question) override;
  void tidy() override;
  // Of a striped file of this volume, with its stub's attributes; else none.
  std::optional<Layout> layout_of(Inode& inode, struct stat* st) const;
  Answer answer_reader(Inode& inode, uid_t user) const;
  Answer answer_sharer(Inode& inode, const Question& question) const;
  Answer answer_mapper(Inode& inode) const;
  Answer answer_writer(Inode& inode, uid_t user) const;
  // What a reader is to know, with the file open for reading; its stub's attributes.
  Answer open_to_read(Inode& inode, struct stat* stub) const;
  void add_directories(Answer* answer) const;
  // The page in which the user's programs count; of a private mount, the volume's server keeps it.
  void add_counts(uid_t user, Answer* answer) const;
  // What whoever serves the volume answers the client; nothing: nobody does.
  ShareAnswer ask_volume_server(Inode& inode, const Question& question) const;

  Filesystem& fs_;
  std::string name_;
  std::unique_ptr<FileServer> server_;  // last: it calls the rest
};

}  // namespace graphlane
