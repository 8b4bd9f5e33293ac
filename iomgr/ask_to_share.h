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

// What a server answers to a ShareRequest that it was sent.
ShareAnswer receive_share_answer(Fd connection);

// By a stub's descriptor: whoever serves the volume that this run directory is of, if his word is
// good for this file: root, ourselves, and the owners of the stub and of the volume. Who that is, its
// socket's inode says, by which we connect (server_protocol.h, "Who answers"); where its owner is
// unknown to our user namespace, nobody is asked. It is shown a descriptor that can only read, and is
// no other's. `client`: for whom; 0: for ourselves. One that did not answer is left alone for a
// minute.
ShareAnswer ask_volume_to_share(int run_directory, int stub_fd, uint32_t client = 0);

}  // namespace graphlane
