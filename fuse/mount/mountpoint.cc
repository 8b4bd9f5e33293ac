#include "fuse/mount/mountpoint.h"

#include <limits.h>

#include <cstdlib>
#include <string_view>

namespace graphlane::fuse {

Outcome<std::string> absolute_mountpoint(const std::string& path) {
  char real[PATH_MAX];
  if (::realpath(path.c_str(), real) != nullptr) return std::string(real);
  if (errno == ENOENT) {
    return make_error(ENOENT, "{0}: no such directory (mkdir {0} makes one)", path);
  }
  if (errno != ENOTCONN) return os_error(errno, path, "cannot open");
  const size_t end = path.find_last_not_of('/');
  const std::string trimmed = path.substr(0, end + 1);
  const size_t slash = trimmed.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : trimmed.substr(0, slash + 1);
  if (::realpath(parent.c_str(), real) == nullptr) return os_error(errno, path, "cannot open");
  const std::string above = real;
  return (above == "/" ? "" : above) + "/" + trimmed.substr(slash + 1);
}

}  // namespace graphlane::fuse
