// Rendezvous: how a job connects to its graph's coordinator, or starts it.
//
// The address is an abstract Unix socket named after the coordinator's user and the graph's first
// file. Any user can listen there, so a job checks the listener's user (SO_PEERCRED). It accepts a
// coordinator of
//
//   root                could read and alter everything anyway
//   the files' owner    could alter the graph anyway; not with a loader
//   the job's own user
//
// in this order. If there is none, the job binds its own user's name, which only one job can, and
// starts the program that serves it. If another user listens there, or holds the name without
// listening, the job gets a private coordinator and shares nothing.
#pragma once

#include <string>

#include "adapters/share/wire/layout.h"
#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane::share {

struct RendezvousOptions {
  FileIdentity first_file;
  uid_t owner = 0;            // of all files; the job's user if they have several owners
  uint64_t budget_bytes = 0;  // if the job starts it; 0: the coordinator's default
  uint64_t idle_ms = 0;       // as budget_bytes
  bool is_last_try = false;   // do not wait for the name's holder any longer
};

// A connection to a trusted coordinator. EAGAIN, ECONNRESET: try again, because one is starting or
// ending.
Outcome<Fd> connect_or_start(const RendezvousOptions& options);

// The listening socket of this user's coordinator for the file. EADDRINUSE: taken.
Outcome<Fd> listen_for_jobs(const FileIdentity& first_file);

// The coordinator's program: $GRAPHLANE_SHARE_COORDINATOR, else beside this program or library,
// else where it is installed. Its messages go to the file $GRAPHLANE_SHARE_LOG.
inline constexpr char kCoordinatorName[] = "graphlane-share-coordinator";

}  // namespace graphlane::share
