// ShareLinks: the processes that read striped files from a server's memory
// (server_protocol.h, "Sharing").
//
// A connection is a scan of one file, and has a thread. The thread waits for devices. After each
// answer it prefetches while the client computes.
//
// Threads: add() from one thread; each connection has its own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <list>
#include <memory>
#include <thread>

#include "iomgr/base/fd.h"
#include "iomgr/server/shared_cache.h"

namespace graphlane {

class ShareLinks {
 public:
  ShareLinks() = default;
  ~ShareLinks();  // ends all connections
  ShareLinks(const ShareLinks&) = delete;
  ShareLinks& operator=(const ShareLinks&) = delete;

  bool empty() const { return links_.empty(); }
  // A user has at most half of the links that others leave.
  bool has_room(uid_t user) const;
  // Takes over a user's answered connection. Closes it if no thread can be started.
  void add(Fd connection, std::unique_ptr<SharedScan> scan, uid_t user);
  // Removes the connections that their clients have closed.
  void tidy();

 private:
  static constexpr size_t kLinksMax = 2048;  // e.g. 64 programs of 8 threads with two files

  struct Link {
    Fd connection;
    std::unique_ptr<SharedScan> scan;
    uid_t user = 0;
    std::atomic<bool> ended{false};
    std::thread thread;
  };
  static void serve(Link& link);
  static void end(Link& link);

  std::list<Link> links_;
};

}  // namespace graphlane
