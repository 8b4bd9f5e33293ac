// ShareClient: how a client of a server begins to share what it reads of a file
// (server_protocol.h, "Sharing").
//
// Threads: one of a process at a time.
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>

#include "iomgr/base/fd.h"

namespace graphlane {

// Which of the file's frames a server has in memory, and a connection that is a scan's.
struct ShareAnswer {
  Fd connection;  // empty: nothing is shared
  Fd frames;
  uint64_t generation = 0;  // of the file
};

// A server's answer to a ShareRequest that it was sent.
ShareAnswer receive_share_answer(Fd connection);

// Asks the server of the volume that this run directory is of, by a stub's descriptor. The server
// is asked only if its user is root, ourselves, or the owner of the stub or of the volume. The
// socket's inode tells that user, and we connect by that inode (server_protocol.h,
// "Authentication"). If our user namespace does not know the owner, no server is asked. The server
// is shown a descriptor that can only read, and that is shared with no other. `client`: for which
// client; 0: for ourselves. A server that did not answer is left alone for a minute.
ShareAnswer ask_volume_to_share(int run_directory, int stub_fd, uint32_t client = 0);

}  // namespace graphlane
