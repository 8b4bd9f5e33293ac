#include "shim/share/mapped_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "iomgr/base/memory_order.h"
#include "iomgr/base/process/memory_map.h"
#include "iomgr/base/sys.h"
#include "shim/base/process.h"
#include "shim/base/settings.h"
#include "shim/fd/open_file.h"

namespace graphlane::shim {
namespace {

struct Permit {
  Uuid file_id;
  uint32_t part_count = 0;
  ino_t parts[kDeviceCountMax] = {};
};
constexpr uint32_t kPermitsMax = 64;
Permit permits[kPermitsMax];
std::atomic<uint32_t> permit_count{0};

// Addresses with mapped pages, now or earlier. Those that touch are one.
struct Shown {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
};
constexpr size_t kShownMax = 256;
Shown shown[kShownMax];
// The most mapped units: a process may have 65530 memory areas, and each stripe unit is one.
constexpr uint64_t kUnitsMax = 16'384;
std::atomic<uint64_t> bytes_shown{0};

// /proc/self/maps, once there is a permit. A forked child opens its own each time.
std::atomic<int> maps_fd{-1};
std::atomic<uint32_t> maps_epoch{0};

bool keep_maps() {
  if (maps_fd.load(relaxed) >= 0) return true;
  Fd opened = open_memory_map();
  if (!opened) return false;
  maps_epoch.store(process_epoch(), relaxed);
  maps_fd.store(keep_internal(std::move(opened)), relaxed);
  return true;
}

struct Addresses {
  uintptr_t begin;
  uintptr_t end;
};

bool for_each_area(Addresses range, FunctionRef<bool(const MemoryArea&)> visit) {
  const uint32_t epoch = process_epoch();
  const bool ours = epoch != 0 && epoch == maps_epoch.load(relaxed);
  const Fd own = ours ? Fd() : open_memory_map();
  const int fd = ours ? maps_fd.load(relaxed) : own.get();
  return graphlane::for_each_area(fd, range.begin, range.end, visit);
}

Addresses addresses_of(const void* buffer, size_t length) {
  const auto begin = reinterpret_cast<uintptr_t>(buffer);
  return {begin, begin + length};
}

Addresses pages_around(Addresses all) {
  return {all.begin / kBlockSize * kBlockSize, round_up(all.end, kBlockSize)};
}

Addresses pages_within(Addresses all) {
  const Addresses pages{round_up(all.begin, kBlockSize), all.end / kBlockSize * kBlockSize};
  return {pages.begin, std::max(pages.begin, pages.end)};
}

// False: no room for another one.
bool remember(Addresses pages) {
  for (Shown& one : shown) {
    uintptr_t begin = 0;
    const bool is_new = one.begin.compare_exchange_strong(begin, pages.begin);
    uintptr_t end = one.end.load(relaxed);
    const bool touches = begin == pages.begin || (begin < pages.begin && pages.begin <= end);
    if (!is_new && !touches) continue;
    while (end < pages.end && !one.end.compare_exchange_weak(end, pages.end)) continue;
    return true;
  }
  return false;
}

uint64_t remembered_bytes() {
  uint64_t bytes = 0;
  for (const Shown& one : shown) {
    const uintptr_t begin = one.begin.load(relaxed);
    bytes += std::max(begin, one.end.load(relaxed)) - begin;
  }
  return bytes;
}

bool may_show(Addresses all) {
  for (const Shown& one : shown) {
    const uintptr_t begin = one.begin.load(relaxed);
    if (begin == 0) return false;
    if (std::max(begin, all.begin) < std::min(all.end, one.end.load(relaxed))) return true;
  }
  return false;
}

bool is_part(ino_t inode) {
  const uint32_t count = permit_count.load(std::memory_order_acquire);
  return std::any_of(permits, permits + count, [&](const Permit& permit) {
    return std::find(permit.parts, permit.parts + permit.part_count, inode) !=
           permit.parts + permit.part_count;
  });
}

bool is_replaceable(const MemoryArea& area) {
  return area.is_private_and_writable() && !area.is_stack &&
         (area.inode == 0 || is_part(area.inode));
}

// If it shows a part. True, so that all areas are visited.
bool make_private(const MemoryArea& area) {
  if (!area.is_private_and_writable() || area.inode == 0 || !is_part(area.inode)) return true;
  const int saved_errno = errno;
  (void)sys::map_over(reinterpret_cast<void*>(area.begin), area.end - area.begin, -1, 0);
  errno = saved_errno;
  return true;
}

// Maps whole pages. False: the memory is private again, or unchanged.
bool show_pages(int part, uint64_t part_offset, char* address, size_t length) {
  if (!sys::map_over(address, length, part, part_offset)) return false;
  if (sys::madvise(address, length, MADV_POPULATE_READ) == 0) return true;
  (void)sys::map_over(address, length, -1, 0);
  return false;
}

bool copy(int part, uint64_t part_offset, char* buffer, size_t length, bool waits) {
  while (length > 0) {
    ssize_t n = waits ? -1 : sys::pread_cached(part, buffer, length, part_offset);
    if (waits || (n < 0 && errno == EOPNOTSUPP)) n = sys::pread(part, buffer, length, part_offset);
    if (n <= 0) return false;
    buffer += n;
    part_offset += static_cast<uint64_t>(n);
    length -= static_cast<size_t>(n);
  }
  return true;
}

bool show(int part, uint64_t part_offset, char* buffer, size_t length, bool waits) {
  const Addresses all = addresses_of(buffer, length);
  const Addresses pages = pages_within(all);
  const size_t head = pages.begin - all.begin;
  const size_t middle = pages.end - pages.begin;
  if (middle == 0 || (part_offset + head) % kBlockSize != 0 || !remember(pages)) {
    return copy(part, part_offset, buffer, length, waits);
  }
  // The kernel reclaims the oldest pages first, so two samples tell.
  const uint64_t first = part_offset + head;
  if (!waits && (sys::would_wait(part, first) || sys::would_wait(part, first + middle - 1))) {
    return false;
  }
  if (!show_pages(part, first, buffer + head, middle)) return false;
  bytes_shown.fetch_add(middle, relaxed);
  const size_t tail = length - head - middle;
  return copy(part, part_offset, buffer, head, waits) &&
         copy(part, first + middle, buffer + head + middle, tail, waits);
}

template <class Step>  // bool (int part, uint64_t part_offset, char* buffer, size_t length)
bool segment_by_segment(const OpenFile& file, ByteRange range, char* buffer, Step step) {
  while (range.length_bytes > 0) {
    const Segment at = file.map.first_segment(range);
    if (!step(file.parts->buffered(at.device_index), at.part_offset, buffer, at.length_bytes)) {
      return false;
    }
    buffer += at.length_bytes;
    range.offset += at.length_bytes;
    range.length_bytes -= at.length_bytes;
  }
  return true;
}

}  // namespace

void permit_mapping(const OpenFile& file, Fd permit) {
  const uint32_t count = permit_count.load(relaxed);
  if (!permit || count == kPermitsMax || !keep_maps()) return;
  Permit& one = permits[count];
  one.file_id = file.file_id;
  one.part_count = file.parts->count();
  for (uint32_t d = 0; d < one.part_count; ++d) {
    struct stat st;
    if (sys::fstat(file.parts->buffered(d), &st) != 0) return;
    one.parts[d] = st.st_ino;
  }
  keep_internal(std::move(permit));
  permit_count.store(count + 1, std::memory_order_release);
}

bool wants_permit(const OpenFile& file) {
  return settings().maps && file.sharing.link_count.load(relaxed) > 0 && !may_map(file);
}

bool may_map(const OpenFile& file) {
  const uint32_t count = permit_count.load(std::memory_order_acquire);
  return std::any_of(permits, permits + count,
                     [&](const Permit& permit) { return permit.file_id == file.file_id; });
}

Fill prepare_buffer(const OpenFile& file, void* buffer, size_t length, bool shares) {
  const Addresses all = addresses_of(buffer, length);
  const bool maps = shares && may_map(file) &&
                    remembered_bytes() / file.map.geometry().stripe_depth_bytes < kUnitsMax;
  const Addresses pages = maps ? pages_around(all) : pages_within(all);
  if (!maps && !may_show(pages)) return Fill::kCopy;
  const bool are_all = for_each_area(pages, maps ? &is_replaceable : &make_private);
  return maps && are_all ? Fill::kMap : Fill::kCopy;
}

bool show_range(const OpenFile& file, ByteRange range, char* buffer, bool waits) {
  return segment_by_segment(file, range, buffer,
                            [waits](int part, uint64_t at, char* to, size_t length) {
                              return show(part, at, to, length, waits);
                            });
}

bool copy_range(const OpenFile& file, ByteRange range, char* buffer, bool waits) {
  return segment_by_segment(file, range, buffer,
                            [waits](int part, uint64_t at, char* to, size_t length) {
                              return copy(part, at, to, length, waits);
                            });
}

void hide(void* buffer, size_t length) {
  const Addresses pages = pages_within(addresses_of(buffer, length));
  if (may_show(pages)) (void)for_each_area(pages, &make_private);
}

uint64_t mapped_bytes() { return bytes_shown.load(relaxed); }

}  // namespace graphlane::shim
