// From a descriptor to a striped file: what layout it has and where its parts
// are. Two sources:
//
//   over a mount       the filesystem answers fgetxattr(kLayoutXattr) with the
//                      stub and the devices' directories
//   without a mount    the descriptor is the stub's; VOL/.graphlane/volume.json
//                      names the devices, and each device.json is checked
//
// Threads: under the caller's SlowLock (static buffers).
#pragma once

#include <sys/stat.h>

#include "iomgr/part_files.h"
#include "iomgr/stub.h"

namespace graphlane {

inline constexpr char kLayoutXattr[] = "user.graphlane.layout";

enum class Origin : uint8_t {
  kForeign,    // an ordinary file
  kMount,      // striped, and FUSE stands behind the descriptor
  kStub,       // striped, and the descriptor is the stub's
  kDamaged,    // a stub that cannot be served; a complaint has been printed
};

struct Located {
  Origin origin = Origin::kForeign;
  Layout layout;
};

// `st` is the descriptor's. For kMount and kStub `parts` is open; a striped file
// over a mount whose parts this process may not open is kForeign: FUSE serves it.
Located locate(int fd, const struct stat& st, PartFiles* parts);

// Device i's directory ("/mnt/d1/graphlane-<uuid>") of the file located last.
const char* located_device(uint32_t device_index);

// Whether the descriptor is a valid stub's, without opening anything else.
bool is_stub(int fd, const struct stat& st, Layout* layout);

}  // namespace graphlane
