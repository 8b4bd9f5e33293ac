// LaterMounts: mounts volumes that were not named at the start, in the namespaces of a running
// command.
//
//   caller P ──fork── S                          in the caller's namespaces, which daemons must not leave
//                     ├─fork── daemon D          one per volume, as for those mounted at the start
//                     └─fork── helper            joins the command's namespaces, mounts, hands the mount to D
//
// Preloaded programs of the command ask S before they return a descriptor in a volume that is not
// mounted, and before they execute a program without the library (iomgr/server/mount_request.h). S
// ends with P.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuse/mount/descriptor_socket.h"
#include "fuse/mount/private_namespace.h"

namespace graphlane::fuse {

// The step that a program of the command is about to take.
struct LaterQuestion {
  std::string path;                      // not empty: it opens this file
  std::string program;                   // else it executes this program
  std::vector<std::string> words;        // with these arguments,
  std::vector<std::string> environment;  // this environment
  std::string directory;                 // and this working directory
};

// Finds the volumes that the question needs. The result may include mounted ones.
using FindLater = std::function<std::vector<std::shared_ptr<const Volume>>(const LaterQuestion&)>;

class LaterMounts {
 public:
  // Forks S and puts its address into the environment. `mounted`: the roots of volumes that are
  // mounted for the command already. With an empty `find` there is no S.
  static LaterMounts start(const std::vector<std::string>& mounted, const MountOptions& options,
                           const FindLater& find);
  LaterMounts() = default;
  LaterMounts(LaterMounts&&) noexcept = default;
  LaterMounts& operator=(LaterMounts&&) noexcept = default;

  // For the command's process: sends S the namespaces that it must join.
  void tell(const PrivateNamespace& space) const;
  // For the caller, once the command has been started.
  void close_sockets() { socket_.reset(); }
  // Ends S. Its daemons end with their mounts.
  void end();

 private:
  pid_t process_ = 0;
  Fd socket_;  // the command's end
};

}  // namespace graphlane::fuse
