// FileServer: answers questions that clients ask by a ticket, or by showing a descriptor of a file
// (server_protocol.h). The host knows the content of an answer: a mount (fuse/coherence/part_server.h), or
// the server of a volume (volume_server.h). Here are the sockets, the waiting, and what several
// processes share.
//
//   question ──► Host::answer ──► reply + descriptors
//                                  ├─ a file to share ──► the connection is a scan's (share_links.h)
//                                  ├─ another server's answer ──► goes on to the client
//                                  └─ a Link          ──► the connection stays: its client writes
//
// A client may show a file of a stranger's FUSE. close() then asks that FUSE, and waits for ever if
// it does not answer. So a file that is not the host's is answered EXDEV. A thread of its own
// closes it, and no other thread waits for that. A host that takes tickets looks at no descriptor.
//
// **No user keeps others waiting.** Users that have asked are answered in turn. A connection that
// says nothing has a second, and less where there are many. Then it makes room: the oldest one of
// the user with most of them goes first. A user has at most half of the links, and half of the
// scans, that others leave.
//
// Threads: one of its own, which is the only one to call the host; start() and the end belong to
// the host's owner.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"
#include "iomgr/server/server_protocol.h"
#include "iomgr/server/share_client.h"
#include "iomgr/server/share_links.h"
#include "iomgr/server/shared_cache.h"

namespace graphlane {

class FileServer {
 public:
  struct Question {
    int fd;         // what the client shows, and Host::serves(); -1: it has a ticket
    Uuid ticket;
    uint32_t kind;  // ServerRequest::kMagic, …
    uid_t user;     // the user that connected
    int connection; // to which the proof goes (send_proof())
    SharingProcess process;  // for which is asked
    bool room_for_link;
  };

  // A client that stays connected.
  class Link {
   public:
    virtual ~Link() = default;
    // Takes a message from the client. False: it has gone, or its message is invalid.
    virtual bool serve(int connection) = 0;
  };

  struct Answer {
    ServerReply reply;
    std::string text;      // goes behind the reply
    std::vector<int> fds;  // go along
    // What keeps these open until they have gone. To ShareRequest: the file, and what it is.
    std::shared_ptr<const StripedFile> file = {};
    SharedCache::Content content = {};
    ShareAnswer passed_on = {};   // or what another server has answered
    std::vector<Fd> opened = {};  // or what was opened for the client alone
    std::unique_ptr<Link> link = {};
  };
  static Answer refusal(int error);

  class Host {
   public:
    // Whether clients ask by tickets, and not by descriptors.
    virtual bool takes_tickets() const { return false; }
    // Whether files of this device are the host's.
    virtual bool serves(dev_t device) const = 0;
    // May throw bad_alloc, which refuses.
    virtual Answer answer(const Question& question) = 0;
    // Every second or so while something is shared.
    virtual void tidy() {}

   protected:
    ~Host() = default;
  };

  // `listening` is bound, and does not block; `shared` may be null: nothing is.
  static Outcome<std::unique_ptr<FileServer>> start(Fd listening, Host& host, SharedCache* shared);
  ~FileServer();
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;

 private:
  class Strangers;
  struct Connection;

  FileServer(Fd listening, Host& host, SharedCache* shared);
  void run();
  // Waits until a client says something, or time has passed. False: the server ends.
  bool wait();
  void accept_all();
  void serve_in_turn();
  void drop_silent();
  // False: the caller must close the connection.
  bool serve(Connection& connection);
  // Returns the descriptor that came with a valid request, or none where there is a ticket. Any
  // other descriptor that came is closed.
  Result<Fd> receive_request(const Connection& connection, ServerRequest* request);
  Answer answer_to(const ServerRequest& request, Fd file, const Connection& connection,
                   std::unique_ptr<SharedScan>* scan);
  Result<std::unique_ptr<SharedScan>> begin_scan(const Answer& answer, const Connection& connection,
                                                 const SharingProcess& process);
  bool has_room_for_link(uid_t user) const;
  void tidy();

  const Fd listening_;
  Host& host_;
  SharedCache* const shared_;
  const Fd stopping_;  // eventfd
  const std::shared_ptr<Strangers> strangers_;
  ShareLinks share_links_;
  std::vector<Connection> connections_;  // oldest first
  bool accepts_ = true;                  // descriptors are not short
  std::thread thread_;
};

// Sends the proof to a client with a good ticket. Call it before anything that may take time.
void send_proof(int connection, const Uuid& secret);

// Whether the descriptor that a client shows is open for reading; tells without asking its
// filesystem.
bool is_readable(int fd);

}  // namespace graphlane
