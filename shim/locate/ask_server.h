// Questions to a mount's server (iomgr/server/server_protocol.h): the parts of the file behind this
// descriptor, and whether they may be read, or written, now. And to a server with or without a
// mount: whether the file is in its memory.
// Threads: under the caller's SlowLock (static buffers).
#pragma once

#include <cstddef>

#include "iomgr/base/fd.h"
#include "iomgr/server/server_protocol.h"
#include "iomgr/server/share_client.h"
#include "iomgr/volume/parts/append_progress.h"

namespace graphlane::shim {

struct ServerAnswer {
  // 0; EAGAIN: the file has a writer; otherwise leave the file to the filesystem.
  int error = 0;

  // For 0 and EAGAIN: the answer is valid while *counter is `generation`.
  const Generation* counter = nullptr;
  uint64_t generation = 0;
  const std::atomic<uint32_t>* life = nullptr;  // the word of kLifeOffset
  // for 0: the page to count in, kDeviceCountMax entries; null: none
  DeviceCounts* counts = nullptr;

  // For 0: the parts, which the caller must close, and the reply about the file. `directories` are
  // N names, each with its NUL.
  const ServerReply* reply = nullptr;
  int parts[kDeviceCountMax] = {};
  // Whether reads must be verified. If so, each part's `.sum`, or the part itself; the caller must
  // close them.
  bool has_sums = false;
  int sums[kDeviceCountMax] = {};
  const char* directories = nullptr;
  size_t directories_length = 0;
};

// Returns within twice kServerPatience, whatever the server does. Keeps no descriptor open.
ServerAnswer ask_server(int fd);

// As ask_server(), for writing: the parts are open for that. `connection` (for 0) leads to the
// server, which must be asked before each write. `progress`: the page in which appends are counted.
ServerAnswer ask_to_write(int fd, Fd* connection, AppendProgress** progress);

// For a map of the file's pages: a descriptor that keeps all processes from changing the file.
// Empty: refused.
Fd ask_mount_to_map(int fd);

// The page in which this process counts what it moves without a mount, for the server of the stub's
// volume; kDeviceCountMax entries. Null: none runs. A new server is noticed within a second.
DeviceCounts* counts_of_volume(int stub_fd, const Uuid& volume);

// To share reads of the file. By a descriptor over a mount: asks that mount's server.
ShareAnswer ask_mount_to_share(int fd);
// As above, by a stub's descriptor: asks the server of the volume.
ShareAnswer ask_volume_to_share(int stub_fd);

}  // namespace graphlane::shim
