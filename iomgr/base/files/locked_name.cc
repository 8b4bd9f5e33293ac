#include "iomgr/base/files/locked_name.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include "iomgr/base/files/regular_file.h"

namespace graphlane {
namespace fs = std::filesystem;

Fd lock_name(const std::string& path, int flags) {
  Fd fd(::open(path.c_str(), flags | kNoWait, 0644));  // a directory may be locked, too
  if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return Fd();
  struct stat held, named;
  if (::fstat(fd.get(), &held) != 0 || ::lstat(path.c_str(), &named) != 0 ||
      held.st_ino != named.st_ino || held.st_dev != named.st_dev) {
    errno = EWOULDBLOCK;
    return Fd();
  }
  return fd;
}

void remove_unlocked(const fs::path& directory, const std::string& prefix) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(directory, ignored), end; it != end; it.increment(ignored)) {
    if (it->path().filename().string().starts_with(prefix)) found.push_back(it->path());
  }
  for (const fs::path& path : found) {
    const Fd lock = lock_name(path, O_RDONLY | O_NONBLOCK);
    struct stat st;
    // Another user may use the same prefix in a shared directory.
    const bool is_own = lock && ::fstat(lock.get(), &st) == 0 && st.st_uid == ::geteuid();
    if (is_own) fs::remove_all(path, ignored);
  }
}

}  // namespace graphlane
