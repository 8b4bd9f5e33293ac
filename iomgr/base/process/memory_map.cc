#include "iomgr/base/process/memory_map.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

std::atomic<bool> has_query{true};  // until the kernel rejects it

// As in linux/fs.h of Linux 6.11.
struct Query {
  uint64_t size = sizeof(Query);
  uint64_t flags = 0;
  uint64_t address = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t area_flags = 0;
  uint64_t page_size = 0;
  uint64_t offset = 0;
  uint64_t inode = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint32_t name_size = 0;
  uint32_t build_id_size = 0;
  uint64_t name_address = 0;
  uint64_t build_id_address = 0;
};
constexpr unsigned long kQuery = _IOWR('f', 17, Query);
constexpr uint64_t kThisOrNext = 0x10;
constexpr uint64_t kReadable = 1, kWritable = 2, kExecutable = 4, kShared = 8;

constexpr char kStack[] = "[stack";
constexpr uintptr_t kPageBytes = 4096;

int ioctl(int fd, Query* query) {
  return static_cast<int>(::syscall(SYS_ioctl, fd, kQuery, query));
}

// A name longer than the buffer is no stack's.
bool is_stack_at(int fd, uintptr_t address) {
  char name[32];
  Query query;
  query.address = address;
  query.name_size = sizeof name;
  query.name_address = reinterpret_cast<uint64_t>(name);
  return ioctl(fd, &query) == 0 && std::strncmp(name, kStack, sizeof kStack - 1) == 0;
}

bool ask(int fd, uintptr_t address, MemoryArea* area) {
  Query query;
  query.flags = kThisOrNext;
  query.address = address;
  if (ioctl(fd, &query) != 0) return false;
  *area = {.begin = query.begin,
           .end = query.end,
           .readable = (query.area_flags & kReadable) != 0,
           .writable = (query.area_flags & kWritable) != 0,
           .executable = (query.area_flags & kExecutable) != 0,
           .shared = (query.area_flags & kShared) != 0,
           .inode = query.inode};
  area->is_stack = area->inode == 0 && is_stack_at(fd, area->begin);
  return true;
}

// "55e0-55f0 rw-p 00000000 08:01 1234   /name"
bool parse(const char* line, MemoryArea* area) {
  char* at = nullptr;
  const uintptr_t begin = std::strtoul(line, &at, 16);
  if (*at != '-') return false;
  const uintptr_t end = std::strtoul(at + 1, &at, 16);
  if (*at != ' ' || std::strlen(at) < 5) return false;
  const char* const rights = at + 1;
  *area = {.begin = begin,
           .end = end,
           .readable = rights[0] == 'r',
           .writable = rights[1] == 'w',
           .executable = rights[2] == 'x',
           .shared = rights[3] == 's',
           .is_stack = std::strstr(rights, kStack) != nullptr};
  const char* const device = std::strchr(rights, ':');
  const char* const inode = device == nullptr ? nullptr : std::strchr(device, ' ');
  if (inode == nullptr) return false;
  area->inode = std::strtoul(inode, nullptr, 10);
  return true;
}

// For older kernels: checks a byte of each page.
bool may_touch(uintptr_t at, uintptr_t end) {
  constexpr uint32_t kPagesAtOnce = 64;
  while (at < end) {
    iovec bytes[kPagesAtOnce];
    uint32_t count = 0;
    for (; at < end && count < kPagesAtOnce; at = (at / kPageBytes + 1) * kPageBytes) {
      bytes[count++] = {.iov_base = reinterpret_cast<void*>(at), .iov_len = 1};
    }
    if (sys::copy_onto_itself(bytes, count) != count) return false;
  }
  return true;
}

}  // namespace

Fd open_memory_map() { return Fd(sys::openat(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC)); }

// Long names are cut; the fields before them are not.
bool find_area_in_text(int maps_fd, uintptr_t address, MemoryArea* area) {
  const int saved_errno = errno;
  char block[1024];
  char line[160];
  size_t length = 0;
  uint64_t offset = 0;
  bool found = false;
  for (ssize_t n; !found && (n = sys::pread(maps_fd, block, sizeof block, offset)) > 0;) {
    offset += static_cast<uint64_t>(n);
    for (ssize_t i = 0; i < n && !found; ++i) {
      if (block[i] != '\n') {
        if (length < sizeof line - 1) line[length++] = block[i];
        continue;
      }
      line[length] = '\0';
      length = 0;
      found = parse(line, area) && area->end > address;
    }
  }
  errno = saved_errno;
  return found;
}

bool find_area(int maps_fd, uintptr_t address, MemoryArea* area) {
  const int saved_errno = errno;
  bool found = false;
  if (has_query.load(std::memory_order_relaxed)) {
    found = ask(maps_fd, address, area);
    if (!found && errno == ENOTTY) has_query.store(false, std::memory_order_relaxed);
  }
  errno = saved_errno;
  if (has_query.load(std::memory_order_relaxed)) return found;
  return find_area_in_text(maps_fd, address, area);
}

bool for_each_area(int maps_fd, uintptr_t begin, uintptr_t end,
                   FunctionRef<bool(const MemoryArea&)> visit) {
  MemoryArea area;
  for (uintptr_t at = begin; at < end; at = area.end) {
    if (!find_area(maps_fd, at, &area) || area.begin > at) return false;
    area.begin = at;
    area.end = std::min(area.end, end);
    if (!visit(area)) return false;
  }
  return true;
}

bool populate_writable(void* memory, size_t length) {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = at / kPageBytes * kPageBytes;
  const int saved_errno = errno;
  if (sys::madvise(reinterpret_cast<void*>(begin), at + length - begin, MADV_POPULATE_WRITE) == 0) {
    return true;
  }
  const bool is_unknown = errno == EINVAL;  // before Linux 5.14
  errno = saved_errno;
  return is_unknown && may_touch(at, at + length);
}

}  // namespace graphlane
