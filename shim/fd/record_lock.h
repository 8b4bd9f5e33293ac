// fcntl()'s record locks: on a file that is served without a mount they are ours to take, and on
// others they must not end because we look whether those are stubs.
//
// Threads: everything is safe from any.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

namespace graphlane {

// Whether the descriptor is a stub's; then *status is fcntl(2)'s result, with errno.
bool lock_record(int fd, int command, struct flock* asked, int* status);

// Whether this process may have record locks on that file, which is no stub that we know. To the
// kernel they end with any of its descriptors that the process closes: who looks at a file by its
// name opens no other. Keeps errno.
bool may_have_locks_on(const struct stat& st);

// Whether the command of fcntl() is about record locks.
constexpr bool is_lock_command(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_GETLK ||
         command == F_OFD_SETLK || command == F_OFD_SETLKW || command == F_OFD_GETLK;
}

}  // namespace graphlane
