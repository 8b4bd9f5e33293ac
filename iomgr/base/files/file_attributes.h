// What a copy takes over from a file besides its bytes. As with `cp -a`, what
// the kernel does not let us set (somebody else's owner, an attribute that the
// filesystem lacks) stays as it is, without an error.
#pragma once

#include <sys/stat.h>

namespace graphlane {

// Owner, mode, times and extended attributes (so ACLs too).
void copy_attributes(int from_fd, int to_fd);

// Owner and times, and the mode where there is one, of a symbolic link or a
// special file, which cannot be opened.
void copy_attributes_at(const struct stat& from, int to_directory_fd, const char* to_name);

// Who may read and write: owner, mode without set-id bits, ACL. Parts get this,
// so that the way past the stub is open to exactly those who may open the stub.
void copy_access(int from_fd, int to_fd);

}  // namespace graphlane
