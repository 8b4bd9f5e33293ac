// VolumeServer: the server of a volume without a mount. It lets processes share their reads
// (server_protocol.h, "Sharing"), so that each byte comes from the devices once. Its clients are
// preloaded programs that open stubs themselves, and programs over mounts, by their daemons.
//
//   VOL/.graphlane/run           locked (flock) while a process serves the volume
//
//   VOL/.graphlane/run/server    its socket; a new server replaces that of a dead one
//
//   VOL/.graphlane               locked, shared, by each process that needs a server (ServerUse)
//
// **Coherence.** A file is shared while no process holds its writers' lock, and while its stub's
// ctime stays the same (stub_lock.h). The server checks both before and after it fills a frame,
// and each reader before it copies.
//
// **Rights.** A client that shows a stub's descriptor open for reading may have that file's bytes
// brought into memory, if the stub may give access to them. It reads them by the parts that it
// has open. The shown file must lie on the volume's own filesystem, because a query to any other
// could block for ever.
//
// Threads: those of its FileServer and its lanes; start() and the destructor belong to one owner.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "iomgr/io/lanes.h"
#include "iomgr/server/client_counts.h"
#include "iomgr/server/file_server.h"
#include "iomgr/server/late_closer.h"
#include "iomgr/server/server_options.h"
#include "iomgr/server/shared_cache.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

class VolumeServer final : private FileServer::Host {
 public:
  // EBUSY: another process serves the volume.
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
  Answer answer_changer(const FileServer::Question& question);
  // Whether the descriptor shows VOL itself.
  bool is_root(int shown_fd) const;

  const std::shared_ptr<const Volume> volume_;
  Fd run_directory_;       // has the lock
  dev_t device_ = 0;       // of the volume's files
  dev_t root_device_ = 0;  // of its directory
  bool listens_ = false;
  std::unique_ptr<Lanes> lanes_;
  std::optional<SharedCache> shared_;
  ClientCounts client_counts_;
  std::optional<LateCloser> late_closer_;
  std::unique_ptr<FileServer> server_;  // last: it calls the rest
};

// Serves until SIGINT, SIGTERM or SIGHUP. Without `foreground` it returns once clients can ask;
// the server is then a child in a session of its own.
Outcome<void> serve_volume(const std::shared_ptr<const Volume>& volume,
                           const ServerOptions& options, bool foreground);

// Keeps a volume's server alive, so that programs with a mount each can share their reads. Without
// a server, the first use starts one in the background. It ends with the last use, even if that
// is killed. A server that a user has started stays.
class ServerUse {
 public:
  // Empty if there is no server and none can be started: then each program reads for itself.
  static ServerUse begin(const std::shared_ptr<const Volume>& volume);
  // Returns once a server without users has ended, and so keeps no device busy.
  ~ServerUse();
  ServerUse(ServerUse&&) = default;
  ServerUse& operator=(ServerUse&&) = delete;

 private:
  ServerUse() = default;

  Fd users_;  // has a shared lock
  Fd run_;
};

// Ends the server of the volume, and waits for that. ENOENT: there is none.
Outcome<void> stop_server(const Volume& volume);

// The statistics of the server of the volume at `root` (stats.h). ENOENT: there is none.
Outcome<std::string> ask_for_stats(const std::string& root);

}  // namespace graphlane
