// FileServer: answers clients that ask by a ticket, or by showing a descriptor of a file
// (server_protocol.h). It has the sockets, the waiting, and the shared reads. Its host makes the
// answers: a mount (fuse/coherence/part_server.h), or a volume's server (volume_server.h).
//
//   question ──► Host::answer ──► reply + descriptors
//                                  ├─ a file to share ──► the connection is a scan's (share_links.h)
//                                  ├─ another server's answer ──► goes on to the client
//                                  └─ a Link          ──► the connection stays: its client writes
//
// A client may show a file of a foreign FUSE filesystem. close() then asks that filesystem, and may
// block for ever. So a file that is not the host's is answered EXDEV, and a separate thread
// closes it. A host that takes tickets looks at no descriptor.
//
// **No user keeps others waiting.** Users are answered in turn. A silent connection is closed
// after a second, and sooner where there are many: the oldest one of the user with most of them
// goes first. A user has at most half of the links, and half of the scans, that the others
// leave.
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
    int fd;  // what the client shows, and Host::serves(); -1: it has a ticket
    Uuid ticket;
    uint32_t kind;           // ServerRequest::kMagic, …
    uid_t user;              // the user that connected
    int connection;          // to which the proof goes (send_proof())
    SharingProcess process;  // the process that reads
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
    std::string text;      // follows the reply
    std::vector<int> fds;  // sent with it
    // Owners of the descriptors until they are sent. For a ShareRequest: the file and its content.
    std::shared_ptr<const StripedFile> file = {};
    SharedCache::Content content = {};
    ShareAnswer passed_on = {};   // or the answer of another server
    std::vector<Fd> opened = {};  // or descriptors that were opened for this client
    std::unique_ptr<Link> link = {};
  };
  static Answer refusal(int error);

  class Host {
   public:
    // Whether clients ask by tickets, and not by descriptors.
    virtual bool takes_tickets() const { return false; }
    // Whether files of this device are the host's.
    virtual bool serves(dev_t device) const = 0;
    // May throw bad_alloc: the question is then refused.
    virtual Answer answer(const Question& question) = 0;
    // Called every second or so while something is shared.
    virtual void tidy() {}

   protected:
    ~Host() = default;
  };

  // `listening` is bound and non-blocking. `shared` may be null: then nothing is shared.
  static Outcome<std::unique_ptr<FileServer>> start(Fd listening, Host& host, SharedCache* shared);
  ~FileServer();
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;

 private:
  class Strangers;
  struct Connection;

  FileServer(Fd listening, Host& host, SharedCache* shared);
  void run();
  // Waits for a message or a timeout. False: the server ends.
  bool wait();
  void accept_all();
  void serve_in_turn();
  void drop_silent();
  // False: the caller must close the connection.
  bool serve(Connection& connection);
  // Returns the descriptor of a valid request; empty with a ticket. Closes any other descriptor.
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
  bool accepts_ = true;                  // false while descriptors are short
  std::thread thread_;
};

// Sends the proof for a valid ticket. Must precede everything that may take time.
void send_proof(int connection, const Uuid& secret);

// Whether the descriptor that a client shows is open for reading. Does not query its filesystem.
bool is_readable(int fd);

}  // namespace graphlane
