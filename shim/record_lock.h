// fcntl()'s record locks on a file that is served without a mount.
#pragma once

#include <fcntl.h>

namespace graphlane {

// Whether the descriptor is a stub's; then *status is fcntl(2)'s result, with errno.
bool lock_record(int fd, int command, struct flock* asked, int* status);

// Whether the command of fcntl() is about record locks.
constexpr bool is_lock_command(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_GETLK ||
         command == F_OFD_SETLK || command == F_OFD_SETLKW || command == F_OFD_GETLK;
}

}  // namespace graphlane
