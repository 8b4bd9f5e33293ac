// The questions to a mount's server (iomgr/server/server_protocol.h): which parts does
// the file behind this descriptor have, and may they be read, or written, now? And to one with
// or without a mount: is the file in its memory?
//
// Threads: under the caller's SlowLock (static buffers).
#pragma once

#include <cstddef>

#include "iomgr/base/fd.h"
#include "iomgr/server/server_protocol.h"
#include "iomgr/server/share_client.h"

namespace graphlane {

struct ServerAnswer {
  // 0; EAGAIN: somebody writes the file; else: leave it to the filesystem.
  int error = 0;

  // For 0 and EAGAIN: as long as *counter is `generation`, the answer holds.
  const Generation* counter = nullptr;
  uint64_t generation = 0;
  DeviceCounts* counts = nullptr;  // for 0: where to count what is moved, kDeviceCountMax; null: nowhere

  // For 0: the parts, the caller's to close, and what the reply
  // said of the file. `directories` are N names, each with its NUL.
  const ServerReply* reply = nullptr;
  int parts[kDeviceCountMax] = {};
  // Whether reads are to be verified; then of each part its `.sum`, or the part once more. The caller's to close, too.
  bool has_sums = false;
  int sums[kDeviceCountMax] = {};
  const char* directories = nullptr;
  size_t directories_length = 0;
};

// Answers within two times kServerPatience, whatever the server does. Keeps no descriptor open.
ServerAnswer ask_server(int fd);

// The same for writing: the parts are open for that. `connection`, for 0, is to the
// server, which is asked before each write.
ServerAnswer ask_to_write(int fd, Fd* connection);

// To show its pages in memory: a descriptor as long as which nobody changes the file. Empty: no.
Fd ask_mount_to_map(int fd);

// To share what is read of the file. By a descriptor over a mount: that one's server.
ShareAnswer ask_mount_to_share(int fd);
// By a stub's: whoever serves the volume.
ShareAnswer ask_volume_to_share(int stub_fd);

}  // namespace graphlane
