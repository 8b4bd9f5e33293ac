#include "iomgr/base/files/file_attributes.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <string>
#include <string_view>

namespace graphlane {
namespace {

constexpr char kAcl[] = "system.posix_acl_access";

// False: `from` has no such attribute, or `to` does not accept it.
bool copy_xattr(int from_fd, int to_fd, const char* name) {
  const ssize_t size = ::fgetxattr(from_fd, name, nullptr, 0);
  if (size < 0) return false;
  std::string value(static_cast<size_t>(size), '\0');
  const ssize_t got = ::fgetxattr(from_fd, name, value.data(), value.size());
  return got >= 0 && ::fsetxattr(to_fd, name, value.data(), static_cast<size_t>(got), 0) == 0;
}

bool has_xattr(int fd, const char* name) { return ::fgetxattr(fd, name, nullptr, 0) >= 0; }

void copy_xattrs(int from_fd, int to_fd) {
  const ssize_t size = ::flistxattr(from_fd, nullptr, 0);
  if (size <= 0) return;
  std::string names(static_cast<size_t>(size), '\0');
  const ssize_t got = ::flistxattr(from_fd, names.data(), names.size());
  if (got <= 0) return;
  names.resize(static_cast<size_t>(got));
  for (size_t at = 0; at < names.size(); at += std::string_view(&names[at]).size() + 1) {
    // A mount synthesizes these attributes.
    if (!std::string_view(&names[at]).starts_with("user.graphlane.")) {
      copy_xattr(from_fd, to_fd, &names[at]);
    }
  }
}

// Names and values, without those of Graphlane's own.
std::map<std::string, std::string> xattrs_of(int fd) {
  std::map<std::string, std::string> found;
  const ssize_t size = ::flistxattr(fd, nullptr, 0);
  if (size <= 0) return found;
  std::string names(static_cast<size_t>(size), '\0');
  const ssize_t got = ::flistxattr(fd, names.data(), names.size());
  names.resize(got > 0 ? static_cast<size_t>(got) : 0);
  for (size_t at = 0; at < names.size(); at += std::string_view(&names[at]).size() + 1) {
    const std::string name = &names[at];
    if (name.starts_with("user.graphlane.")) continue;
    std::string value(XATTR_SIZE_MAX, '\0');
    const ssize_t length = ::fgetxattr(fd, name.c_str(), value.data(), value.size());
    value.resize(length > 0 ? static_cast<size_t>(length) : 0);
    found[name] = std::move(value);
  }
  return found;
}

// Copies the owner, or at least the group. False: `to` has another owner, so set-id bits must not
// be copied.
bool copy_owner(int to_fd, const struct stat& from) {
  if (::fchown(to_fd, from.st_uid, from.st_gid) == 0) return true;
  (void)!::fchown(to_fd, static_cast<uid_t>(-1), from.st_gid);
  return false;
}

}  // namespace

void copy_attributes(int from_fd, int to_fd) {
  struct stat from;
  if (::fstat(from_fd, &from) != 0) return;
  const mode_t kept = copy_owner(to_fd, from) ? 07777 : 01777;
  copy_xattrs(from_fd, to_fd);
  (void)::fchmod(to_fd, from.st_mode & kept);  // with an ACL the group bits are its mask
  const timespec times[2] = {from.st_atim, from.st_mtim};
  (void)::futimens(to_fd, times);
}

bool have_same_attributes(int one_fd, int other_fd) {
  struct stat one, other;
  if (::fstat(one_fd, &one) != 0 || ::fstat(other_fd, &other) != 0) return false;
  return one.st_uid == other.st_uid && one.st_gid == other.st_gid && one.st_mode == other.st_mode &&
         one.st_mtim.tv_sec == other.st_mtim.tv_sec &&
         one.st_mtim.tv_nsec == other.st_mtim.tv_nsec && xattrs_of(one_fd) == xattrs_of(other_fd);
}

bool has_acl(int fd) { return has_xattr(fd, kAcl); }

void copy_attributes_at(const struct stat& from, int to_directory_fd, const char* to_name) {
  (void)!::fchownat(to_directory_fd, to_name, from.st_uid, from.st_gid, AT_SYMLINK_NOFOLLOW);
  if (!S_ISLNK(from.st_mode)) (void)::fchmodat(to_directory_fd, to_name, from.st_mode & 0777, 0);
  const timespec times[2] = {from.st_atim, from.st_mtim};
  (void)::utimensat(to_directory_fd, to_name, times, AT_SYMLINK_NOFOLLOW);
}

void copy_access(int from_fd, int to_fd) {
  struct stat from;
  if (::fstat(from_fd, &from) != 0) return;
  copy_owner(to_fd, from);
  mode_t mode = from.st_mode & 0777;
  // With an ACL the group bits are the mask of all its entries. Without the ACL, they must not
  // open the file to the owning group.
  if (has_xattr(from_fd, kAcl) && !copy_xattr(from_fd, to_fd, kAcl)) mode &= 0707;
  (void)::fchmod(to_fd, mode);
}

}  // namespace graphlane
