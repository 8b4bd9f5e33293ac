// FileServer: answers questions that clients ask by showing a descriptor of a file
// (server_protocol.h). What is to be said its host knows: a mount (../fuse/part_server.h), or
// the server of a volume (volume_server.h). Here are the sockets, the waiting, and what several
// processes share.
//
//   question + descriptor ──► Host::answer ──► reply + descriptors
//                                  ├─ a file to share ──► the connection is a scan's (share_links.h)
//                                  ├─ another server's answer ──► goes on to the client
//                                  └─ a Link          ──► the connection stays: its client writes
//
// What a client shows may be a stranger's FUSE, and close() asks it, and waits for ever if it does
// not answer. So what is not the host's is answered EXDEV, and closed by a thread of its own, for
// which nobody waits.
//
// Threads: one of its own, which is the only one to call the host; start() and the end belong to
// the host's owner.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "iomgr/ask_to_share.h"
#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"
#include "iomgr/server_protocol.h"
#include "iomgr/share_links.h"
#include "iomgr/shared_cache.h"

namespace graphlane {

class FileServer {
 public:
  struct Question {
    int fd;         // what the client shows; Host::serves() it
    uint32_t kind;  // ServerRequest::kMagic, …
    SharingProcess process;  // for which is asked
    bool room_for_link;
  };

  // A client who stays connected.
  class Link {
   public:
    virtual ~Link() = default;
    // Takes a message of his. False: he has gone, or talks nonsense.
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

  FileServer(Fd listening, Host& host, SharedCache* shared);
  void run();
  std::unique_ptr<Link> serve(Fd& connection, bool room_for_link);
  // The descriptor that came with a valid request; whatever else came goes.
  Result<Fd> receive_request(int connection, PassedShareRequest* request);
  Answer answer_to(const PassedShareRequest& request, Fd file, int connection, bool room_for_link,
                   std::unique_ptr<SharedScan>* scan);
  Result<std::unique_ptr<SharedScan>> begin_scan(const Answer& answer,
                                                 const SharingProcess& process);
  void tidy();

  const Fd listening_;
  Host& host_;
  SharedCache* const shared_;
  const Fd stopping_;  // eventfd
  const std::shared_ptr<Strangers> strangers_;
  ShareLinks share_links_;
  std::thread thread_;
};

// Whether the descriptor that a client shows is open for reading; tells without asking its
// filesystem.
bool is_readable(int fd);

}  // namespace graphlane
