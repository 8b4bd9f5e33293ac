#include "iomgr/device_kind.h"

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

}  // namespace graphlane
