// Without a mount: maps of striped files (mmap), pieced together from the parts' own pages.
//
//   program's map   | unit 0 | unit 1 | unit 2 | …       each piece maps a part
//   part            1 @ 0      0 @ 0    1 @ S            shared pages, read by the kernel when touched
//
// Private maps, and read-only shared ones, are lazy in this way. If a map needs more pieces than
// the kernel allows, its bytes are read at once into private memory, if there is room. A writable
// shared map is refused: its pages would reach the parts without the stub's knowledge.
//
// Over a mount the kernel maps the file by FUSE.
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/base/sys.h"
#include "iomgr/cache/memory_budget.h"
#include "shim/base/report.h"
#include "shim/base/slow_lock.h"
#include "shim/fd/open_file.h"
#include "shim/hooks/hooks.h"
#include "shim/hooks/real.h"
#include "shim/locate/stub_path.h"
#include "shim/read/transfer.h"

namespace graphlane::shim {
namespace {

constexpr int kTypeMask = 0x0f;  // MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE
constexpr int kSharedValidate = 0x03;
constexpr int kFixedNoReplace = 0x100000;
// The share of a process's maps (vm.max_map_count) that one map may use; the kernel's default if
// /proc does not tell.
constexpr uint64_t kMapsShare = 2;
constexpr uint64_t kMapsDefault = 65530;

// Set once the library has made a map, so that later calls must tell maps apart.
std::atomic<bool> has_pieces{false};

struct MapCall {
  void* address;
  size_t length;
  int protection;
  int flags;
  uint64_t offset;

  bool is_private() const { return (flags & kTypeMask) == MAP_PRIVATE; }
  bool is_fixed() const { return (flags & (MAP_FIXED | kFixedNoReplace)) != 0; }
};

void* failed_map(int error) {
  errno = error;
  return MAP_FAILED;
}

uint64_t pieces_max() {
  char text[32];
  const Fd file(sys::openat(AT_FDCWD, "/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC));
  const ssize_t length = file ? sys::read(file.get(), text, sizeof text) : -1;
  uint64_t most = kMapsDefault;
  if (length > 0) std::from_chars(text, text + length, most);
  return most / kMapsShare;
}

// Reserves address space for the whole map, at the requested address.
void* reserve(const MapCall& request) {
  constexpr int kPlaceFlags = MAP_FIXED | kFixedNoReplace
#ifdef MAP_32BIT
                              | MAP_32BIT
#endif
      ;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (request.flags & kPlaceFlags);
  return real::mmap(request.address, request.length, PROT_NONE, flags, -1, 0);
}

// Maps the pieces over the reserved space. 0 or an errno.
int map_pieces(const OpenFile& file, const MapCall& request, char* at) {
  const int flags = (request.flags & ~kFixedNoReplace) | MAP_FIXED;
  const uint64_t length = round_up(request.length, kBlockSize);
  for (uint64_t done = 0; done < length;) {
    const Segment piece =
        file.map.first_segment({.offset = request.offset + done, .length_bytes = length - done});
    if (::syscall(SYS_mmap, at + done, piece.length_bytes, request.protection, flags,
                  file.parts->buffered(piece.device_index), piece.part_offset) == -1) {
      return errno;
    }
    done += piece.length_bytes;
  }
  return 0;
}

// Reads all bytes at once. 0 or an errno.
int fill_map(const OpenFileRef& file, const MapCall& request, char* at) {
  if (::syscall(SYS_mmap, at, request.length, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == -1) {
    return errno;
  }
  for (size_t done = 0; done < request.length;) {
    const ssize_t n = read_striped(file, request.offset + done, at + done, request.length - done);
    if (n < 0) return static_cast<int>(-n);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return ::syscall(SYS_mprotect, at, request.length, request.protection) == 0 ? 0 : errno;
}

bool has_room_for(uint64_t length) {
  return length <= budget_of(MemoryUse::kBuffers, memory_available_bytes());
}

void* map_stub(const OpenFileRef& file, int fd, const MapCall& request) {
  const bool writes_shared = !request.is_private() && (request.protection & PROT_WRITE) != 0;
  if (file->origin == Origin::kDamaged) return failed_map(file->error);
  if (!may_read(file.access())) return failed_map(EACCES);
  if (writes_shared && !may_write(file.access())) return failed_map(EACCES);
  if (request.length == 0 || request.offset % kBlockSize != 0) return failed_map(EINVAL);
  if (request.length > SIZE_MAX / 2 || request.offset > SIZE_MAX / 2) return failed_map(ENOMEM);
  if (writes_shared) {
    explain_once(Refusal::kMmap, fd);
    return failed_map(ENODEV);
  }
  const uint64_t pieces = request.length / file->map.geometry().stripe_depth_bytes + 2;
  // Mapped pages of the parts cannot be verified.
  const bool is_lazy = pieces <= pieces_max() && !file->parts->sums().verifies();
  if (!is_lazy && !has_room_for(request.length)) {
    explain_once(Refusal::kMmap, fd);
    return failed_map(ENODEV);
  }
  void* const place = reserve(request);
  if (place == MAP_FAILED) return MAP_FAILED;
  int error = is_lazy ? map_pieces(*file, request, static_cast<char*>(place)) : ENOMEM;
  if (error == 0) has_pieces.store(true, std::memory_order_relaxed);
  // ENOMEM is possible, because the process has other maps, too.
  if (error == ENOMEM && has_room_for(request.length)) {
    error = fill_map(file, request, static_cast<char*>(place));
  }
  if (error == 0) {
    file->file_counters->count_read(0);
    return place;
  }
  sys::munmap(place, request.length);
  if (error == ENOMEM) explain_once(Refusal::kMmap, fd);
  return failed_map(error == ENOMEM ? ENODEV : error);
}

// Whether the map at `address` is one of a part: "…/graphlane-<uuid>/parts/xx/<id>" in
// /proc/self/maps.
bool is_piece(const void* address) {
  static char text[4096];  // under the SlowLock
  const SlowLockGuard lock(slow_lock);
  const Fd maps(sys::openat(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (!lock || !maps) return true;  // unknown
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  size_t kept = 0;
  for (ssize_t n; (n = sys::read(maps.get(), text + kept, sizeof text - kept)) > 0;) {
    std::string_view all(text, kept + static_cast<size_t>(n));
    for (size_t end; (end = all.find('\n')) != all.npos; all.remove_prefix(end + 1)) {
      const std::string_view line = all.substr(0, end);
      uintptr_t first = 0, behind = 0;
      const auto begin = std::from_chars(line.data(), line.data() + line.size(), first, 16);
      if (begin.ptr >= line.data() + line.size()) continue;
      std::from_chars(begin.ptr + 1, line.data() + line.size(), behind, 16);
      if (wanted >= first && wanted < behind) {
        return line.find("/graphlane-") != line.npos && line.find("/parts/") != line.npos;
      }
    }
    kept = all.size() < sizeof text ? all.size() : 0;
    std::memmove(text, all.data(), kept);
  }
  return false;
}

}  // namespace
}  // namespace graphlane::shim

using namespace graphlane;
using namespace graphlane::shim;

void* hook_mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) {
  const int type = flags & kTypeMask;
  const bool is_of_file = fd >= 0 && (flags & MAP_ANONYMOUS) == 0 &&
                          (type == MAP_PRIVATE || type == MAP_SHARED || type == kSharedValidate);
  if (is_of_file) {
    const int saved_errno = errno;
    if (const OpenFileRef file = acquire_stub(fd, Group::map)) {
      void* const map =
          map_stub(file, fd, {address, length, protection, flags, static_cast<uint64_t>(offset)});
      if (map != MAP_FAILED) errno = saved_errno;
      return map;
    }
  }
  return real::mmap(address, length, protection, flags, fd, offset);
}
void* hook_mmap64(void* address, size_t length, int protection, int flags, int fd, off_t offset) {
  return hook_mmap(address, length, protection, flags, fd, offset);
}

// Refuses to grow a piece, because it would show the following bytes of the part, not those of the
// file.
void* hook_mremap(void* address, size_t old_length, size_t length, int flags, void* target) {
  if (length > old_length && has_pieces.load(std::memory_order_relaxed) && is_piece(address)) {
    explain_once(Refusal::kGrowMap);
    return failed_map(ENOMEM);
  }
  return real::mremap(address, old_length, length, flags, target);
}
