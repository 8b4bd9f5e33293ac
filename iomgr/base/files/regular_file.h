// Opens a file that this code chose and the program did not: a part, a JSON file, a lock file, a
// possible stub. A user with write permission on a directory can put a FIFO, a device node, a
// socket or a link there. An ordinary open() would then block for ever, follow the link, or start
// a tape.
//
// open_regular() opens only a regular file, never waits, and follows no link in the last name.
// Below a given directory it follows no link in any name, because the owner of a folder on the
// way can replace it by a link at any time. It fails with kNotRegular on another kind of file,
// with ELOOP on a link, and with EAGAIN while the file's owner holds a lease on it.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/open_below.h"

namespace graphlane {

// The error for other kinds of file. errno has no code of its own for it.
inline constexpr int kNotRegular = EMEDIUMTYPE;

// Flags for every open() that only_regular() checks afterwards.
inline constexpr int kNoWait = O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC;

// As strerror(), with a text for kNotRegular.
inline const char* error_text(int code) {
  if (code == kNotRegular) return "not a regular file";
  const char* text = ::strerrordesc_np(code);
  return text != nullptr ? text : "unknown error";
}

// Keeps a file that was opened with kNoWait, if it is a regular file; otherwise empty (errno).
// Clears O_NONBLOCK, because with it io_uring fails reads that must wait for the device.
inline Fd only_regular(Fd opened) {
  struct stat st;
  if (!opened || sys::fstat(opened.get(), &st) != 0) return {};
  if (!S_ISREG(st.st_mode)) {
    opened.reset();
    errno = kNotRegular;
    return {};
  }
  const int flags = sys::fcntl(opened.get(), F_GETFL);
  if (flags >= 0) sys::fcntl(opened.get(), F_SETFL, flags & ~O_NONBLOCK);
  return opened;
}

inline Fd open_regular(int directory, const char* path, int flags, mode_t mode = 0) {
  flags |= kNoWait;
  Fd opened(directory == AT_FDCWD ? sys::openat(directory, path, flags, mode)
                                  : open_below(directory, path, flags, mode));
  // ENXIO means a FIFO without a reader, or a socket. (A regular file never fails so.)
  if (!opened && errno == ENXIO) errno = kNotRegular;
  return only_regular(std::move(opened));
}

}  // namespace graphlane
