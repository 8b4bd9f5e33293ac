// ShareClient: how a client starts to share its reads of a file, and to count them
// (server_protocol.h, "Sharing", "Counting").
//
// Threads: one thread of a process at a time.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>

#include "iomgr/base/fd.h"

namespace graphlane {

// Shows which of the file's frames a server has in memory, and carries the scan's connection.
struct ShareAnswer {
  Fd connection;  // empty: nothing is shared
  Fd frames;
  uint64_t generation = 0;  // the file's
};

// Receives the answer to a ShareRequest.
ShareAnswer receive_share_answer(Fd connection);

// Asks the server of this run directory's volume to share a file, shown by its stub's descriptor.
// Only a server of root, of this process's user, or of the owner of the stub or the volume is
// asked. The socket's inode tells that user, and the connection goes by that inode
// (server_protocol.h, "Authentication"). An owner unknown to this user namespace is not trusted.
// The shown descriptor is read-only and private to the question. `client`: the client to ask for;
// 0: this process. A server that did not answer is not asked again for a minute.
ShareAnswer ask_volume_to_share(int run_directory, int stub_fd, uint32_t client = 0);

// The page in which programs of this user count what they move, for the same server
// (client_counts.h). `root_fd` is the volume's root, open for reading. Empty: none is trusted or there.
Fd ask_volume_for_counts(int run_directory, int root_fd);

// Tells that server that this stub's file is being changed. Waits for no answer; without a server
// nothing happens.
void tell_volume_of_change(int run_directory, int stub_fd);

}  // namespace graphlane
