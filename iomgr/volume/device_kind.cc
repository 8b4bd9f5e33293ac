#include "iomgr/volume/device_kind.h"

#include <sys/sysmacros.h>

#include <cstdio>

#include "iomgr/base/fd.h"

namespace graphlane {

DeviceKind device_kind(dev_t filesystem) {
  for (const char* up : {"", "/.."}) {
    char path[64];
    std::snprintf(path, sizeof path, "/sys/dev/block/%u:%u%s/queue/rotational", major(filesystem),
                  minor(filesystem), up);
    const Fd file(sys::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
    char digit = 0;
    if (file && sys::read(file.get(), &digit, 1) == 1) {
      return digit == '1' ? DeviceKind::kDisk : DeviceKind::kSsd;
    }
  }
  return DeviceKind::kNone;
}

dev_t disk_of(dev_t filesystem) {
  char path[64];
  const auto open_below = [&](const char* name) {
    std::snprintf(path, sizeof path, "/sys/dev/block/%u:%u/%s", major(filesystem),
                  minor(filesystem), name);
    return Fd(sys::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
  };
  if (!open_below("partition")) return filesystem;
  const Fd file = open_below("../dev");
  char text[32] = {};
  unsigned disk_major = 0, disk_minor = 0;
  if (!file || sys::read(file.get(), text, sizeof text - 1) <= 0 ||
      std::sscanf(text, "%u:%u", &disk_major, &disk_minor) != 2) {
    return filesystem;
  }
  return makedev(disk_major, disk_minor);
}

}  // namespace graphlane
