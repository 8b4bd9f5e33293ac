// ClientCounts: what preloaded programs have read and written of each device.
//
//   program ──adds──► a page of its user's ◄──reads── server ──► `graphlane stat`
//
// A server gives each of its users a page of memory, and the user's programs add to it. The counts
// are advisory: a program can write anything there. So a number of them decides nothing, and one
// user cannot change what another user's programs have counted.
//
// Threads: everything is safe from any thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "iomgr/base/fd.h"
#include "iomgr/base/mutex.h"
#include "iomgr/server/server_protocol.h"

namespace graphlane {

// Counters of one device, for all users.
struct ClientSum {
  uint64_t io_count = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
};

class ClientCounts {
 public:
  ClientCounts() = default;
  ~ClientCounts();
  ClientCounts(const ClientCounts&) = delete;
  ClientCounts& operator=(const ClientCounts&) = delete;

  // The page of this user, a memfd of sealed size: kDeviceCountMax times DeviceCounts. It
  // stays this object's. -1: there are too many users, or no memory is left; nothing is counted then.
  int page_of(uid_t user);
  bool has_page(uid_t user) const;
  // Gives the user's programs a page of another server's, which adds them up: sums() leaves it out.
  // Ignored if the user has a page.
  void take_page(uid_t user, Fd page);

  // Sums over all users, by device.
  std::vector<ClientSum> sums(uint32_t device_count) const;

 private:
  static constexpr size_t kUsersMax = 64;

  struct Page {
    Fd fd;
    const DeviceCounts* counts = nullptr;
  };

  mutable Mutex mu_;
  std::map<uid_t, Page> pages_ GUARDED_BY(mu_);
};

}  // namespace graphlane
