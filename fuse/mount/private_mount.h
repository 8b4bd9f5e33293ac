// A mount for one command alone: `graphlane run -- CMD`.
//
//   caller P ──fork── daemon D, one a volume        the caller's namespaces, own session
//      ├──────fork── S                             mounts volumes not foreseen (later_mounts.h)
//      └──────fork── command C                     a mount namespace of its own (private_namespace.h)
//                      /dev/fuse, mount(2) over VOL;  the descriptor goes to D
//                      execvp(CMD)
//
// The mount lives in the command's mount namespace (for an ordinary user in a user namespace too,
// with the user's own IDs). So it goes when the command's last process goes, however that ends, and
// no other process ever sees it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fuse/mount/later_mounts.h"
#include "fuse/mount/mount.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

struct PrivateCommand {
  std::vector<std::string> argv;
  std::string program = {};  // the file that is executed; "": argv[0], by $PATH
};

// Runs the command with every volume mounted over its own directory. Returns its exit status
// as env(1) reports it: the command's own, 128 + n when signal n ended it, 126
// or 127 when it could not be started. An Error: the private mount cannot be
// made here, and the command was not started.
//
// `find`: the volumes that a program of the command asks for later; none: no program may ask.
//
// SIGINT, SIGTERM, SIGHUP and SIGQUIT sent to the caller reach the command.
// Ignores mountpoint and foreground of `options`.
Outcome<int> run_in_private_mounts(const std::vector<std::shared_ptr<const Volume>>& volumes,
                                   const MountOptions& options, const PrivateCommand& command,
                                   const FindLater& find = {});

}  // namespace graphlane
