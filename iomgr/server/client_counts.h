// ClientCounts: what preloaded programs have read and written of each device.
//
//   program ──adds──► its user's page ◄──reads── server ──► `graphlane stat`
//
// The server gives each user a page of memory, and the user's programs add to it. The counts
// are advisory, because a program can write anything there. So no decision depends on them, and
// one user cannot change the counts of another.
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

  // The user's page, a memfd of sealed size: kDeviceCountMax times DeviceCounts. This object owns
  // it. -1: too many users, or no memory; then nothing is counted.
  int page_of(uid_t user);
  bool has_page(uid_t user) const;
  // Gives the user's programs the page of another server. That server adds it up, so sums() leaves
  // it out. Ignored if the user has a page.
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
