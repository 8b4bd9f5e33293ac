#include "iomgr/base/files/unnamed_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

namespace graphlane {

Result<Fd> make_unnamed_file(const std::string& directory, int flags) {
  Fd fd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600));
  if (fd) return fd;
  // The other errors are not those of a filesystem or a kernel that lacks O_TMPFILE.
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT) {
    return last_errno();
  }
  std::string name = directory + "/.graphlane-XXXXXX";
  fd.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd || ::unlink(name.c_str()) != 0) return last_errno();
  return fd;
}

}  // namespace graphlane
