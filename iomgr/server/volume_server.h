// VolumeServer: the server of a volume without a mount. Preloaded programs that open stubs
// themselves, and those of mounts, whose daemons pass their questions on, share what they read
// (server_protocol.h, "Sharing"): each byte comes from the devices once.
//
//   VOL/.graphlane/run           locked (flock) while somebody serves the volume
//   VOL/.graphlane/run/server    its socket; what a dead server has left the next one replaces
//   VOL/.graphlane               locked, shared, by whoever needs the server to live (ServerUse)
//
// **Coherence.** A file is shared while nobody holds its writers' lock and its stub has one and
// the same ctime (stub_lock.h): that is looked at before and after each frame is filled, and by
// each reader before he copies.
//
// **Rights.** Who shows a descriptor of a stub that is open for reading may have that file's bytes
// brought into memory, if the stub may give access to them; he reads them by parts that he has
// open. What is shown must lie on the volume's own filesystem: of any other, looking at it could
// take for ever.
//
// Threads: its FileServer's and its lanes'; start() and the end belong to one owner.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "iomgr/io/lanes.h"
#include "iomgr/server/client_counts.h"
#include "iomgr/server/file_server.h"
#include "iomgr/server/server_options.h"
#include "iomgr/server/shared_cache.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

class VolumeServer final : private FileServer::Host {
 public:
  // EBUSY: somebody serves it already.
  static Outcome<std::unique_ptr<VolumeServer>> start(std::shared_ptr<const Volume> volume,
                                                      const ServerOptions& options);
  ~VolumeServer();
  VolumeServer(const VolumeServer&) = delete;
  VolumeServer& operator=(const VolumeServer&) = delete;

 private:
  using Answer = FileServer::Answer;

  explicit VolumeServer(std::shared_ptr<const Volume> volume) : volume_(std::move(volume)) {}
  Outcome<Fd> listen();
  bool serves(dev_t device) const override { return device == device_ || device == root_device_; }
  Answer answer(const FileServer::Question& question) override;
  Answer answer_sharer(int file_fd) const;
  Answer answer_stats(int root_fd) const;
  Answer answer_counter(const FileServer::Question& question);
  // Whether the descriptor shows VOL itself.
  bool is_root(int shown_fd) const;

  const std::shared_ptr<const Volume> volume_;
  Fd run_directory_;  // has the lock
  dev_t device_ = 0;       // of the volume's files
  dev_t root_device_ = 0;  // of its directory
  bool listens_ = false;
  std::unique_ptr<Lanes> lanes_;
  std::optional<SharedCache> shared_;
  ClientCounts client_counts_;
  std::unique_ptr<FileServer> server_;  // last: it calls the rest
};

// Serves until SIGINT, SIGTERM or SIGHUP. In the background (not `foreground`) it returns when
// clients can ask; the server is a child in a session of its own then.
Outcome<void> serve_volume(const std::shared_ptr<const Volume>& volume,
                           const ServerOptions& options, bool foreground);

// A hold on a volume's server, by which programs that each have a mount of their own share what they read.
// Where nobody serves the volume, the first one starts a server in the background; it ends with
// the last one, however that ends. One that a user has started lives on.
class ServerUse {
 public:
  // Empty where there is no server to be had, for want of rights, say: then everybody reads for himself.
  static ServerUse begin(const std::shared_ptr<const Volume>& volume);
  // Returns when a server that nobody needs any more has ended, and so keeps no device busy.
  ~ServerUse();
  ServerUse(ServerUse&&) = default;
  ServerUse& operator=(ServerUse&&) = delete;

 private:
  ServerUse() = default;

  Fd users_;  // has a shared lock
  Fd run_;
};

// Ends whoever serves the volume, and waits for that. ENOENT: nobody does.
Outcome<void> stop_server(const Volume& volume);

// What the server of the volume at `root` has done (stats.h). ENOENT: there is none.
Outcome<std::string> ask_for_stats(const std::string& root);

// The page in which programs of this user count for the server of that volume (server/client_counts.h).
// Empty: there is none.
Fd ask_for_counts(int root_fd);

}  // namespace graphlane
