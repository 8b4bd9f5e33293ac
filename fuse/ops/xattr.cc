// Extended attributes: the host's, and two of the mount itself.
//
//   user.graphlane.server   on a striped file and on the root: the socket that the
//                           preload library asks for the parts (part_server.h)
//   user.graphlane.stats    on the root: counters of the lanes, as JSON
//
// Neither is listed, so that copying tools leave them alone. Nor is the host's user.graphlane.kind
// (iomgr/volume/kind.h), which only the daemon sets.
#include <linux/limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <memory>
#include <string>
#include <string_view>

#include "fuse/ops/operations.h"
#include "iomgr/server/server_protocol.h"
#include "iomgr/server/stats.h"
#include "iomgr/volume/kind.h"

namespace graphlane::fuse {
namespace {

using std::string_literals::operator""s;

constexpr std::string_view kServer = kServerXattr;
constexpr std::string_view kStats = "user.graphlane.stats";

constexpr std::string_view kAccessAcl = "system.posix_acl_access";
constexpr std::string_view kDefaultAcl = "system.posix_acl_default";

bool is_own(std::string_view name) {
  return name == kServer || name == kStats || name == kKindXattr;
}

int answer_value(fuse_req_t req, std::string_view value, size_t size) {
  if (size == 0) {
    reply::xattr(req, value.size());
  } else if (size < value.size()) {
    return ERANGE;
  } else {
    reply::buf(req, value.data(), value.size());
  }
  return 0;
}

int get_server(Filesystem& fs, fuse_req_t req, Inode& inode, int path_fd, size_t size) {
  struct stat st;
  if (::fstat(path_fd, &st) != 0) return errno;
  const bool has_one =
      &inode == &fs.inodes.root() || (!inode.control && inode.stub.look(path_fd, st).striped());
  if (!has_one || fs.server_name.empty()) return ENODATA;
  return answer_value(req, fs.server_name, size);
}

// Calls `get(buffer, size)` and answers with its result.
template <class Get>
int answer_host(fuse_req_t req, size_t size, const Get& get) {
  if (size == 0) {
    const ssize_t length = get(nullptr, 0);
    if (length < 0) return errno;
    reply::xattr(req, static_cast<size_t>(length));
    return 0;
  }
  const auto value = std::make_unique<char[]>(size);
  const ssize_t length = get(value.get(), size);
  if (length < 0) return errno;
  reply::buf(req, value.get(), static_cast<size_t>(length));
  return 0;
}

// An access ACL changes the mode as well. The parts of a striped file have a mode only, so the file
// cannot have an ACL beyond that.
int set_access_acl(fuse_req_t req, Inode& inode, int path_fd, const char* value, size_t size,
                   int flags) {
  struct stat st;
  if (::fstat(path_fd, &st) != 0) return errno;
  if (!inode.stub.look(path_fd, st).plain()) return EOPNOTSUPP;
  const ProcPath path(path_fd);
  if (::setxattr(path.c_str(), kAccessAcl.data(), value, size, flags) != 0) return errno;
  // As chmod(): a caller outside the group cannot set the set-group-ID bit. The host saw root.
  if (::fuse_req_ctx(req)->uid != 0 && (st.st_mode & S_ISGID) != 0 &&
      !is_in_group(req, st.st_gid) && ::fstat(path_fd, &st) == 0) {
    (void)::chmod(path.c_str(), st.st_mode & 07777 & ~static_cast<mode_t>(S_ISGID));
  }
  return answer_result(req, 0);
}

}  // namespace

int op::getxattr(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, const char* name, size_t size) {
  Inode& inode = fs.inodes.of(ino);
  const Result<HostPath> host = fs.inodes.path(inode);
  if (!host) return host.error().code;
  if (name == kServer) return get_server(fs, req, inode, host->get(), size);
  if (name == kStats) {
    if (ino != FUSE_ROOT_ID) return ENODATA;
    fs.prepare_to_read();
    return answer_value(
        req,
        stats_json(*fs.lanes, fs.extents.stats(), fs.shared ? fs.shared->stats() : SharedStats{},
                   fs.sweeps.stats(), fs.client_counts.sums(fs.volume->device_count())),
        size);
  }
  const ProcPath path(host->get());
  const int error = answer_host(req, size, [&](char* value, size_t room) {
    return ::getxattr(path.c_str(), name, value, room);
  });
  // On a host without ACLs no file has one. An error would deny access.
  const bool is_acl = name == kAccessAcl || name == kDefaultAcl;
  return is_acl && error == EOPNOTSUPP ? ENODATA : error;
}

int op::listxattr(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, size_t size) {
  const Result<HostPath> host = fs.inodes.path(fs.inodes.of(ino));
  if (!host) return host.error().code;
  std::string names(XATTR_LIST_MAX, '\0');
  const ssize_t length = ::listxattr(ProcPath(host->get()).c_str(), names.data(), names.size());
  if (length < 0) return errno;
  names.resize(static_cast<size_t>(length));
  const std::string hidden(kKindXattr, sizeof kKindXattr);  // with its zero byte
  if (const size_t at = ("\0"s + names).find("\0"s + hidden); at != std::string::npos) {
    names.erase(at, hidden.size());
  }
  return answer_value(req, names, size);
}

int op::setxattr(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, const char* name,
                 const char* value, size_t size, int flags) {
  Inode& inode = fs.inodes.of(ino);
  if (inode.control) return EROFS;
  if (is_own(name)) return EPERM;
  const Result<HostPath> host = fs.inodes.path(inode);
  if (!host) return host.error().code;
  if (is_replaced(inode, host->get())) return ESTALE;
  if (name == kAccessAcl) return set_access_acl(req, inode, host->get(), value, size, flags);
  const ProcPath path(host->get());
  return answer_result(req, ::setxattr(path.c_str(), name, value, size, flags));
}

int op::removexattr(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, const char* name) {
  Inode& inode = fs.inodes.of(ino);
  if (inode.control) return EROFS;
  if (is_own(name)) return EPERM;
  const Result<HostPath> host = fs.inodes.path(inode);
  if (!host) return host.error().code;
  if (is_replaced(inode, host->get())) return ESTALE;
  const ProcPath path(host->get());
  return answer_result(req, ::removexattr(path.c_str(), name));
}

}  // namespace graphlane::fuse
