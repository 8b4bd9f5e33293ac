// Copies a file's attributes. As with `cp -a`, an attribute that the kernel or the filesystem
// does not let us set (another user's ownership, an unsupported xattr) is skipped without an
// error.
#pragma once

#include <sys/stat.h>

namespace graphlane {

// Owner, mode, times and extended attributes (also ACLs).
void copy_attributes(int from_fd, int to_fd);

// Whether two open files have the same owner, mode, mtime and extended attributes: whether nothing was
// skipped.
bool have_same_attributes(int one_fd, int other_fd);
// Whether the file has an access control list beyond its mode.
bool has_acl(int fd);

// As copy_attributes() for a symbolic link or a special file, which cannot be opened: owner and times, and the
// mode if it has one.
void copy_attributes_at(const struct stat& from, int to_directory_fd, const char* to_name);

// The access rights: owner, mode without set-id bits, ACL. Parts get them, so that a user may open
// the parts exactly when it may open the stub.
void copy_access(int from_fd, int to_fd);

}  // namespace graphlane
