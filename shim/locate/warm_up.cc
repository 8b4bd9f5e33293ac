#include "shim/locate/warm_up.h"

#include <fcntl.h>
#include <liburing.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>

#include <cerrno>

#include "iomgr/base/files/cold.h"
#include "iomgr/io/uring_queue.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "shim/base/settings.h"
#include "shim/fd/fd_table.h"
#include "shim/fd/internal_fd.h"
#include "shim/read/queues.h"

namespace graphlane::shim {
namespace {

// All queries write it, one perhaps after its ring has failed.
struct statx ignored_stat;

bool may_make_ring() {
  const IoBackend backend = settings().backend;
  return (backend == IoBackend::kAuto || backend == IoBackend::kUring) &&
         __libc_single_threaded == 0 && is_first_process();
}

void look_up(io_uring& ring, std::span<const int> roots, const char* path) {
  for (const int root : roots) {
    io_uring_sqe* const sqe = io_uring_get_sqe(&ring);  // never null: an entry for each
    io_uring_prep_statx(sqe, root, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS,
                        &ignored_stat);
  }
}

void await(io_uring& ring, uint32_t count) {
  while (count > 0) {
    const int status = io_uring_submit_and_wait(&ring, 1);
    if (status < 0 && status != -EINTR) return;
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&ring, &cqe) == 0) {
      io_uring_cqe_seen(&ring, cqe);
      --count;
    }
  }
}

}  // namespace

void warm_up(std::span<const int> roots, const Uuid& file_id, bool with_sums) {
  const PartName part(file_id);
  if (roots.size() < 2 || !may_make_ring() || !is_cold(roots[0], part.c_str())) return;
  const int saved_errno = errno;
  const auto count = static_cast<uint32_t>(roots.size() * (with_sums ? 2 : 1));
  io_uring ring;
  if (set_up_ring(count, &ring, 0, internal_fd_floor()) == 0) {
    const int ring_fd = ring.ring_fd;
    set_entry(ring_fd, FdEntry::internal());
    look_up(ring, roots, part.c_str());
    const PartSumName sums(file_id);
    if (with_sums) look_up(ring, roots, sums.c_str());
    await(ring, count);
    set_entry(ring_fd, FdEntry::unknown());
    io_uring_queue_exit(&ring);
  }
  errno = saved_errno;
}

}  // namespace graphlane::shim
