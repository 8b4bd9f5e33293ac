// PrivateNamespace: the mount namespace of one command, in which volumes are mounted. An ordinary
// user's lies in a user namespace that keeps the user's IDs.
//
// Threads: the process must have only one.
#pragma once

#include <memory>
#include <vector>

#include "fuse/mount/mount.h"
#include "iomgr/volume/volume.h"

namespace graphlane::fuse {

struct PrivateNamespace {
  bool has_users = false;  // it has a user namespace of its own
  Fd users;                // /proc/self/ns/user
  Fd mounts;               // /proc/self/ns/mnt

  // Moves this process to new namespaces. An Error: they are not permitted here.
  static Outcome<PrivateNamespace> enter();
  // Moves another process into the same namespaces.
  Outcome<void> join() const;
  // Mounts the volume over its own directory, and hands the mount to the daemon at the socket.
  Outcome<void> mount(const Volume& volume, const MountOptions& options, int daemon_socket) const;
};

// Reopens this process's descriptors of files in the volumes, so that they show the mounts. They
// are the working directory, and files that a shell has opened for the command (< VOL/FILE).
void renew_descriptors(const std::vector<std::shared_ptr<const Volume>>& volumes);

}  // namespace graphlane::fuse
