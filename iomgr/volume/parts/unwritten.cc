#include "iomgr/volume/parts/unwritten.h"

#include <linux/fiemap.h>
#include <linux/fs.h>

#include <algorithm>
#include <cstring>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/reopen.h"

namespace graphlane {
namespace {

constexpr uint32_t kExtents = 32;

struct Extents {
  alignas(fiemap) char bytes[sizeof(fiemap) + kExtents * sizeof(fiemap_extent)];
  fiemap& head() { return *reinterpret_cast<fiemap*>(bytes); }
};

// False: the filesystem does not tell.
bool read_extents(int fd, uint64_t begin, uint64_t end, Extents* extents) {
  std::memset(extents->bytes, 0, sizeof(fiemap));
  fiemap& head = extents->head();
  head.fm_start = begin;
  head.fm_length = end - begin;
  head.fm_flags = FIEMAP_FLAG_SYNC;
  head.fm_extent_count = kExtents;
  return ::syscall(SYS_ioctl, fd, FS_IOC_FIEMAP, &head) == 0;
}

}  // namespace

uint64_t first_unwritten(int part_fd, uint64_t begin, uint64_t end) {
  if (part_fd < 0 || begin >= end) return end;
  Fd readable;
  if ((sys::fcntl(part_fd, F_GETFL) & O_PATH) != 0) {
    readable = reopen(part_fd, O_RDONLY | O_NONBLOCK);
    if (!readable) return end;
    part_fd = readable.get();
  }
  Extents extents;
  while (begin < end && read_extents(part_fd, begin, end, &extents)) {
    const fiemap& head = extents.head();
    const auto* const first = reinterpret_cast<const fiemap_extent*>(&head + 1);
    if (head.fm_mapped_extents == 0) return end;
    uint64_t next = begin;
    for (const fiemap_extent* e = first; e != first + std::min(head.fm_mapped_extents, kExtents);
         ++e) {
      if (e->fe_logical >= end) return end;
      if ((e->fe_flags & FIEMAP_EXTENT_UNWRITTEN) != 0) {
        return std::max<uint64_t>(begin, e->fe_logical);
      }
      next = e->fe_logical + e->fe_length;
      if ((e->fe_flags & FIEMAP_EXTENT_LAST) != 0) return end;
    }
    if (next <= begin) return end;
    begin = next;
  }
  return end;
}

}  // namespace graphlane
