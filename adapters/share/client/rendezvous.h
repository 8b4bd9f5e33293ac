// Rendezvous: how a job finds its graph's coordinator, or starts it.
//
// The place is an abstract Unix socket named after the user who runs the coordinator and
// the graph's first file. Anybody could listen there, so a job looks (SO_PEERCRED) who
// does, and goes only to a coordinator of
//
//   root                it could read and alter everything anyway
//   the files' owner    who could alter the graph anyway; not with a loader's bytes
//   the job's own user
//
// in this order. There is none: the job takes the name of its own user's by binding the
// socket, which only one of several can, and starts the program that serves it. A stranger
// listens there, or holds the name and never does: the job has a coordinator of its own, and
// shares nothing.
#pragma once

#include <string>

#include "adapters/share/wire/layout.h"
#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane::share {

struct RendezvousOptions {
  FileIdentity first_file;
  uid_t owner = 0;             // of all files; the job's user if they have several
  uint64_t budget_bytes = 0;   // if it starts one; 0: the program chooses
  uint64_t idle_ms = 0;        // likewise
  bool is_last_try = false;    // nobody who holds the name is waited for any longer
};

// A connection to a coordinator that the job may trust. EAGAIN, ECONNRESET: to be tried
// again, as another one is coming or going.
Outcome<Fd> meet(const RendezvousOptions& options);

// The place of this user's coordinator for the file, to be served. EADDRINUSE: taken.
Outcome<Fd> take_place(const FileIdentity& first_file);

// Where the coordinator's program is: $GRAPHLANE_SHARE_COORDINATOR, else beside this
// program or library, else where it is installed. What it has to say goes to the file
// $GRAPHLANE_SHARE_LOG.
inline constexpr char kCoordinatorName[] = "graphlane-share-coordinator";

}  // namespace graphlane::share
