// What stands where a regular file is expected, in words for an error.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include "iomgr/base/files/regular_file.h"

namespace graphlane {

inline const char* kind_text(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO: return "is a FIFO, not a regular file";
    case S_IFSOCK: return "is a socket, not a regular file";
    case S_IFCHR: return "is a character device, not a regular file";
    case S_IFBLK: return "is a block device, not a regular file";
    case S_IFDIR: return "is a directory, not a regular file";
    case S_IFLNK: return "is a symbolic link, which is not followed here";
    default: return error_text(kNotRegular);
  }
}

// The text for the error that opening `path` has just given. Names what is there instead of a
// regular file.
inline const char* opening_error_text(int code, int directory, const char* path) {
  struct stat st;
  const bool is_other = (code == kNotRegular || code == ELOOP) &&
                        ::syscall(SYS_newfstatat, directory, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
  return is_other && !S_ISREG(st.st_mode) ? kind_text(st.st_mode) : error_text(code);
}

}  // namespace graphlane
