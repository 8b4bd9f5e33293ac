// From a descriptor to a striped file: its layout and its parts. Two sources:
//
//   over a mount       the mount's server sends the layout and the parts (ask_server.h)
//
//   without a mount    the descriptor is the stub's; VOL/.graphlane/volume.json names the devices,
//                      and each device.json is checked (devices.h)
//
// Threads: under the caller's SlowLock (static buffers).
#pragma once

#include <linux/stat.h>
#include <sys/stat.h>

#include "iomgr/base/fd.h"
#include "iomgr/server/server_protocol.h"
#include "iomgr/volume/parts/append_progress.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/stub/stub.h"
#include "shim/fd/access.h"

namespace graphlane::shim {

enum class Origin : uint8_t {
  kForeign,  // an ordinary file
  kMount,    // striped, over a mount
  kWritten,  // striped, over a mount, with a writer: FUSE serves it
  // striped, over a mount, written by this process: FUSE serves all but what link_writer.h takes
  kLinked,
  kStub,     // striped, and the descriptor is the stub's
  kDamaged,  // a stub that cannot be served; a message was printed
};

struct Located {
  Origin origin = Origin::kForeign;
  int error = 0;  // kDamaged: the errno of reads
  Layout layout;
  statx_timestamp stub_ctime = {};  // kStub: from before it was read
  // kStub: the file's end if a power failure left longer parts (OpenSize::is_cut)
  uint64_t bytes_max = kNoBound;
  // Over a mount: how long the answer is valid.
  const Generation* counter = nullptr;
  uint64_t generation = 0;
  const std::atomic<uint32_t>* life = nullptr;
  DeviceCounts* counts = nullptr;  // the server's; null: it has none (ask_server.h)
};

// `st` is the descriptor's. For kMount and kStub `parts` is open. If a mount's server does not
// answer, the file is kForeign, and FUSE serves it.
Located locate(int fd, const struct stat& st, Access access, PartFiles* parts);

// Locates for writes by a descriptor over a mount: kLinked, with the server's connection and the
// page of an append (link_writer.h), or kForeign.
Located locate_to_write(int fd, PartFiles* parts, Fd* connection, AppendProgress** progress);

// The size of an open stub's file by its parts, looked up by name; `fd` is the stub's.
uint64_t size_by_parts(int fd, const Layout& layout);

// VOL/.graphlane/run of the stub's volume, as an O_PATH descriptor. Empty: not found.
Fd open_run_directory(int stub_fd);

// Device i's directory ("/mnt/d1/graphlane-<uuid>") of the last located file.
const char* located_device(uint32_t device_index);

// Whether the descriptor lies on a FUSE filesystem.
bool lies_on_fuse(int fd);

// Whether the descriptor is a valid stub's, without opening anything else.
bool is_stub(int fd, const struct stat& st, Layout* layout);

}  // namespace graphlane::shim
