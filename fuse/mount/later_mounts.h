// LaterMounts: mounts volumes that were not foreseen, in the namespace of a command that runs.
//
//   caller P ──fork── S                          the caller's namespaces: daemons must not keep the command's
//                     ├─fork── daemon D          one a volume, as for those mounted at the start
//                     └─fork── helper            joins the command's namespace, mounts, hands the mount to D
//
// Preloaded programs of the command ask S before they give out a descriptor of a volume that is not
// mounted, or become a program without the library (iomgr/server/mount_request.h). S ends with P.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuse/mount/descriptor_socket.h"
#include "fuse/mount/private_namespace.h"

namespace graphlane {

// The step that a program of the command is about to take.
struct LaterQuestion {
  std::string path;                      // not empty: it opens this
  std::string program;                   // else it becomes this, by
  std::vector<std::string> words;        // these words,
  std::vector<std::string> environment;  // with this environment,
  std::string directory;                 // in this working directory
};

// Finds the volumes that the question needs. Mounted ones may be among them.
using FindLater = std::function<std::vector<std::shared_ptr<const Volume>>(const LaterQuestion&)>;

class LaterMounts {
 public:
  // Forks S, and puts its address into the environment. `mounted`: roots of volumes that the
  // command finds mounted. Empty `find`: there is no S.
  static LaterMounts start(const std::vector<std::string>& mounted, const MountOptions& options,
                           const FindLater& find);
  LaterMounts() = default;
  LaterMounts(LaterMounts&&) noexcept = default;
  LaterMounts& operator=(LaterMounts&&) noexcept = default;

  // Call it in the command's process: sends what S needs to join it.
  void tell(const PrivateNamespace& space) const;
  // Call it in the caller, once the command has been started.
  void close_sockets() { socket_.reset(); }
  // Ends S. Its daemons end with the mounts.
  void end();

 private:
  pid_t process_ = 0;
  Fd socket_;  // the command's end
};

}  // namespace graphlane
