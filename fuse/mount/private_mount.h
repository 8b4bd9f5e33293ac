// A mount for one command: `graphlane run -- CMD`.
//
//   caller P ──fork── daemon D, one per volume      in the caller's namespaces, own session
//      ├──────fork── S                             mounts further volumes (later_mounts.h)
//      └──────fork── command C                     in its own mount namespace (private_namespace.h)
//                      /dev/fuse, mount(2) over VOL;  the descriptor goes to D
//                      execvp(CMD)
//
// The mount lives in the command's mount namespace. (An ordinary user also needs a user namespace,
// with that user's own IDs.) So the mount ends with the command's last process, and no other
// process ever sees it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fuse/mount/later_mounts.h"
#include "fuse/mount/mount.h"
#include "iomgr/volume/volume.h"

namespace graphlane::fuse {

struct PrivateCommand {
  std::vector<std::string> argv;
  std::string program = {};  // the executable; "": argv[0], by $PATH
};

// Runs the command with every volume mounted over its own directory. Returns the exit status as
// env(1) does: the command's own, 128 + n after signal n, 126 or 127 if it could not be started. An
// Error: the private mount is impossible here, and the command was not started.
//
// `find` finds volumes that a program of the command needs later; empty: none are mounted later.
//
// SIGINT, SIGTERM, SIGHUP and SIGQUIT to the caller reach the command.
// Ignores mountpoint and foreground of `options`.
Outcome<int> run_in_private_mounts(const std::vector<std::shared_ptr<const Volume>>& volumes,
                                   const MountOptions& options, const PrivateCommand& command,
                                   const FindLater& find = {});

}  // namespace graphlane::fuse
