// PrivateNamespace: the mount namespace of one command, and mounting a volume in it. For an ordinary user it lies in a
// user namespace that keeps the user's IDs.
//
// Threads: of a process that has no other ones.
#pragma once

#include <memory>
#include <vector>

#include "fuse/mount/mount.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

struct PrivateNamespace {
  bool has_users = false;  // a user namespace was needed
  Fd users;                // that, and the mounts': /proc/self/ns/user, /proc/self/ns/mnt
  Fd mounts;

  // This process moves to new ones. An Error: namespaces are not allowed here.
  static Outcome<PrivateNamespace> enter();
  // Moves a process that is outside into the same namespaces.
  Outcome<void> join() const;
  // Mounts the volume over its own directory, and hands the mount to its daemon, which waits at the socket.
  Outcome<void> mount(const Volume& volume, const MountOptions& options, int daemon_socket) const;
};

// Makes this process's descriptors of files in the volumes, opened before they were mounted, show the
// mounts. Those are its working directory, and files that a shell has opened for it (< VOL/FILE).
void renew_descriptors(const std::vector<std::shared_ptr<const Volume>>& volumes);

}  // namespace graphlane
