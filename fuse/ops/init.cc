// Negotiates the connection's features with the kernel, once.
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "fuse/ops/operations.h"

namespace graphlane::fuse {
namespace {

// Linux 5.14. Kernels before 5.13 pass chattr's calls on without checking the caller.
constexpr unsigned kFirstMinorThatChecksFlags = 34;

bool kernel_is_at_least(int major, int minor) {
  struct utsname name;
  int found_major = 0, found_minor = 0;
  return ::uname(&name) == 0 &&
         std::sscanf(name.release, "%d.%d", &found_major, &found_minor) == 2 &&
         std::pair(found_major, found_minor) >= std::pair(major, minor);
}

bool want(fuse_conn_info* conn, unsigned capability) {
  if ((conn->capable & capability) == 0) return false;
  conn->want |= capability;
  return true;
}

// The fraction of memory for background requests: the kernel cannot reclaim pages that are being
// read, and would kill processes instead.
constexpr uint64_t kBackgroundShare = 4;

uint32_t background_count(const Filesystem& fs) {
  const uint64_t affordable = fs.memory_at_start_bytes / kBackgroundShare / fs.read_bytes_max;
  return static_cast<uint32_t>(
      std::clamp(affordable, uint64_t{kBackgroundMin}, uint64_t{kBackgroundMax}));
}

}  // namespace

void op::init(void* userdata, fuse_conn_info* conn) {
  Filesystem& fs = *static_cast<Filesystem*>(userdata);
  conn->max_read = static_cast<unsigned>(fs.read_bytes_max);
  conn->max_write = std::min(conn->max_write, static_cast<unsigned>(fs.read_bytes_max));
  conn->max_background = background_count(fs);
  conn->congestion_threshold = conn->max_background * 3 / 4;
  // open(O_TRUNC) then comes as two requests. The kernel holds writes back during a truncation, but
  // not during such an open, after which it may even cache an old size.
  conn->want &= ~static_cast<unsigned>(FUSE_CAP_ATOMIC_O_TRUNC);
  // The daemon decides which pages are stale (invalidation.h).
  conn->want &= ~static_cast<unsigned>(FUSE_CAP_AUTO_INVAL_DATA);
  want(conn, FUSE_CAP_EXPLICIT_INVAL_DATA);
  want(conn, FUSE_CAP_SPLICE_WRITE);  // replies: from the parts' page cache to the kernel
  want(conn, FUSE_CAP_SPLICE_READ);   // writes: from the kernel to the parts
  if (fs.inodes.handles().usable()) want(conn, FUSE_CAP_EXPORT_SUPPORT);  // open_by_handle_at
  // The host stores ACLs and applies them to new files; the kernel checks them. A user's own mount
  // has one user and needs none.
  fs.applies_umask = fs.privileged && leave_common_umask() && want(conn, FUSE_CAP_POSIX_ACL) &&
                     want(conn, FUSE_CAP_DONT_MASK);
  // Version 2: the kernel leaves set-id bits to the daemon (drop_set_id_bits()) and saves a
  // getxattr before every write. Version 1 would save nothing.
  conn->want &= ~static_cast<unsigned>(FUSE_CAP_HANDLE_KILLPRIV);
  fs.init_extension.want_killpriv_v2(conn);
  fs.direct_reads = fs.init_extension.want_direct_io_with_maps(conn);
  fs.direct_writes = kernel_is_at_least(6, 18);
  fs.kernel_checks_flags = conn->proto_minor >= kFirstMinorThatChecksFlags;
  // With passthrough the kernel would change the access times of the host's files.
  fs.passthrough =
      fs.privileged && access_time_flag(fs) == 0 && fs.init_extension.want_passthrough(conn);
}

}  // namespace graphlane::fuse
