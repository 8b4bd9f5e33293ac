#include "iomgr/base/files/rename_exchange.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>

namespace graphlane {

int rename_exchange(int directory_fd, const std::string& from, const std::string& to) {
  const auto rename = [directory_fd](const std::string& old_name, const std::string& new_name) {
    return ::renameat(directory_fd, old_name.c_str(), directory_fd, new_name.c_str()) == 0 ? 0
                                                                                           : errno;
  };
  if (::renameat2(directory_fd, from.c_str(), directory_fd, to.c_str(), RENAME_EXCHANGE) == 0) {
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) return errno;
  const std::string aside = to + ".replaced-" + std::to_string(::getpid());
  if (const int error = rename(to, aside); error != 0) return error;
  if (const int error = rename(from, to); error != 0) {
    (void)rename(aside, to);
    return error;
  }
  return rename(aside, from);
}

}  // namespace graphlane
