// fcntl()'s record locks. On a file served without a mount the library takes them. On other files
// it must not end them by its look whether they are stubs.
//
// Threads: everything is safe from any.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

namespace graphlane::shim {

// Whether the descriptor is a stub's. If so, *status is fcntl(2)'s result, with errno.
bool lock_record(int fd, int command, struct flock* asked, int* status);

// Whether this process may have record locks on that file, which is no known stub. The kernel ends
// them when the process closes any descriptor of the file. So code that looks at a file by its name
// must not open it then. Keeps errno.
bool may_have_locks_on(const struct stat& st);

// Whether the command of fcntl() is about record locks.
constexpr bool is_lock_command(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_GETLK ||
         command == F_OFD_SETLK || command == F_OFD_SETLKW || command == F_OFD_GETLK;
}

}  // namespace graphlane::shim
