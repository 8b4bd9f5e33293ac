// AskToShare: how a client of a server begins to share what it reads of a file
// (server_protocol.h, "Sharing").
//
// Threads: of a process one at a time.
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

// By a connection to a server, which is shown the descriptor. `client`: for whom; 0: for
// ourselves.
ShareAnswer ask_to_share(Fd connection, int fd, uint32_t client = 0);

// By a stub's descriptor: whoever serves the volume that this run directory is of, if his word is
// good for this file: root, ourselves, and the owners of the stub and of the volume. One that did
// not answer is left alone for a minute.
ShareAnswer ask_volume_to_share(int run_directory, int stub_fd, uint32_t client = 0);

}  // namespace graphlane
