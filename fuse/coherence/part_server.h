// PartServer: gives preloaded programs a file's parts, lets them write the parts, and lets several
// processes share what they read (iomgr/server/server_protocol.h). Every mount has one.
//
// A client proves its right to read or write the file by a ticket, which it gets through a
// descriptor of the file (ticket_book.h).
//
// Threads: its FileServer's; start() and the end belong to the session's owner.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "fuse/ops/filesystem.h"
#include "iomgr/server/file_server.h"

namespace graphlane::fuse {

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
  bool serves(dev_t) const override { return false; }  // clients show tickets, not descriptors
  Answer answer(const Question& question) override;
  void tidy() override;
  // The layout, and the stub's attributes, of a striped file of this volume; else none.
  std::optional<Layout> layout_of(Inode& inode, struct stat* st) const;
  Answer answer_reader(Inode& inode, uid_t user) const;
  Answer answer_sharer(Inode& inode, const Question& question) const;
  Answer answer_mapper(Inode& inode) const;
  Answer answer_writer(Inode& inode, uid_t user) const;
  // The answer to a reader, with the file open for reading, and the stub's attributes.
  Answer open_to_read(Inode& inode, struct stat* stub) const;
  void add_directories(Answer* answer) const;
  // Adds the page of counters for the user's programs. For a private mount the volume's server has
  // it.
  void add_counts(uid_t user, Answer* answer) const;
  // The answer of the process that serves the volume; empty: there is none.
  ShareAnswer ask_volume_server(Inode& inode, const Question& question) const;

  Filesystem& fs_;
  std::string name_;
  std::unique_ptr<FileServer> server_;  // last, because it calls the members above
};

}  // namespace graphlane::fuse
