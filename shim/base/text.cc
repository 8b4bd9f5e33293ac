#include "shim/base/text.h"

#include <cerrno>

#include "iomgr/base/sys.h"

namespace graphlane::shim {

void find_path(int fd, PathText* path) {
  Text<40> link;
  link << "/proc/self/fd/" << static_cast<uint64_t>(fd);
  const int saved_errno = errno;
  path->assign([&](char* room, size_t size) {
    return ::syscall(SYS_readlinkat, AT_FDCWD, link.c_str(), room, size);
  });
  errno = saved_errno;
}

void complain(std::string_view subject, std::string_view reason) {
  Text<1024> line;
  line << "graphlane: " << subject << ": " << reason << "\n";
  const int saved_errno = errno;
  (void)!sys::write(STDERR_FILENO, line.c_str(), line.view().size());
  errno = saved_errno;
}

}  // namespace graphlane::shim
