// Session: one connection to the kernel, from /dev/fuse to the worker threads.
//
//   Filesystem fs ──► Session session(fs) ──► mount() or adopt() ──► serve()
//
// Threads: one owner; serve() starts the workers and ends them.
#pragma once

#include <memory>
#include <string>

#include "fuse/coherence/part_server.h"
#include "fuse/mount/stop_signals.h"
#include "fuse/ops/filesystem.h"
#include "fuse/ops/fuse_api.h"

namespace graphlane::fuse {

// Call it once in each process that will serve, before the Filesystem is made. Prepares
// descriptors, identities and messages.
void prepare_server_process();

class Session {
 public:
  static Outcome<std::unique_ptr<Session>> make(Filesystem& fs);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Mounts at `mountpoint`: as root directly, else through fusermount3.
  Outcome<void> mount(const std::string& mountpoint);

  // Serves a mount that another process has made on this /dev/fuse descriptor.
  Outcome<void> adopt(Fd device);

  // Answers requests until the mount is gone or a signal of `stop` (null: none) arrives. Then
  // unmounts what mount() has made.
  Outcome<void> serve(StopSignals* stop);

 private:
  explicit Session(Filesystem& fs) : fs_(fs) {}
  void start_server();
  int run_workers();

  Filesystem& fs_;
  std::unique_ptr<PartServer> server_;
  fuse_session* session_ = nullptr;
  bool mounted_ = false;
};

}  // namespace graphlane::fuse
