#include "shim/text.h"

#include <cerrno>

#include "iomgr/base/sys.h"

namespace graphlane {

PathText path_of(int fd) {
  Text<40> link;
  link << "/proc/self/fd/" << static_cast<uint64_t>(fd);
  char target[4096];
  const int saved_errno = errno;
  const long n = ::syscall(SYS_readlinkat, AT_FDCWD, link.c_str(), target, sizeof target);
  errno = saved_errno;
  PathText path;
  if (n > 0) path << std::string_view(target, static_cast<size_t>(n));
  return path;
}

void complain(std::string_view subject, std::string_view reason) {
  Text<1024> line;
  line << "graphlane: " << subject << ": " << reason << "\n";
  const int saved_errno = errno;
  (void)!sys::write(STDERR_FILENO, line.c_str(), line.view().size());
  errno = saved_errno;
}

}  // namespace graphlane
