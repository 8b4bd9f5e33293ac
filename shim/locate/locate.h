// From a descriptor to a striped file: what layout it has and where its parts
// are. Two sources:
//
//   over a mount       the mount's server, which is shown the descriptor, sends
//                      the layout and the parts (ask_server.h)
//   without a mount    the descriptor is the stub's; VOL/.graphlane/volume.json
//                      names the devices, and each device.json is checked (devices.h)
//
// Threads: under the caller's SlowLock (static buffers).
#pragma once

#include <linux/stat.h>
#include <sys/stat.h>

#include "iomgr/base/fd.h"
#include "iomgr/server/server_protocol.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/stub/stub.h"
#include "shim/fd/access.h"

namespace graphlane {

enum class Origin : uint8_t {
  kForeign,    // an ordinary file
  kMount,      // striped, and FUSE stands behind the descriptor
  kWritten,    // the same, but somebody writes it now: FUSE serves it
  kLinked,     // the same, and we write it: FUSE serves it but for large writes
  kStub,       // striped, and the descriptor is the stub's
  kDamaged,    // a stub that cannot be served; a complaint has been printed
};

struct Located {
  Origin origin = Origin::kForeign;
  int error = 0;  // kDamaged: what a read fails with
  Layout layout;
  statx_timestamp stub_ctime = {};  // kStub: from before it was read
  uint64_t bytes_max = kNoBound;    // kStub: the parts may be longer, after a power failure (OpenSize::is_cut)
  // Of a file over a mount: how long that holds.
  const Generation* counter = nullptr;
  uint64_t generation = 0;
  DeviceCounts* counts = nullptr;  // the server's; null: it does not count (ask_server.h)
};

// `st` is the descriptor's. For kMount and kStub `parts` is open; a striped file
// over a mount whose server does not answer is kForeign: FUSE serves it.
Located locate(int fd, const struct stat& st, Access access, PartFiles* parts);

// The same for large writes by a descriptor over a mount: kLinked, with the server's
// connection, or kForeign.
Located locate_to_write(int fd, PartFiles* parts, Fd* connection);

// The size of an open stub's file, as its parts have it, looked up by name; `fd`
// is the stub's.
uint64_t size_by_parts(int fd, const Layout& layout);

// VOL/.graphlane/run of the volume that the open stub lies in, as a place only. Empty: it is not
// to be found.
Fd open_run_directory(int stub_fd);

// Device i's directory ("/mnt/d1/graphlane-<uuid>") of the file located last.
const char* located_device(uint32_t device_index);

// Whether a mount stands behind the descriptor.
bool lies_on_fuse(int fd);

// Whether the descriptor is a valid stub's, without opening anything else.
bool is_stub(int fd, const struct stat& st, Layout* layout);

}  // namespace graphlane
