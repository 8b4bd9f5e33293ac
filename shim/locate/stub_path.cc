#include "shim/locate/stub_path.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "iomgr/volume/preferred_io.h"
#include "shim/base/process.h"
#include "shim/base/slow_lock.h"
#include "shim/base/text.h"
#include "shim/fd/open_file.h"
#include "shim/fd/record_lock.h"
#include "shim/locate/locate.h"

namespace graphlane::shim {

const char* last_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

bool names_an_entry(const char* name) {
  return *name != '\0' && std::strcmp(name, ".") != 0 && std::strcmp(name, "..") != 0;
}

Fd open_parent(int directory, const char* path) {
  static PathText text;
  text.cut(0);
  text << std::string_view(path, static_cast<size_t>(last_name(path) - path)) << ".";
  return Fd(sys::openat(directory, text.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

bool has_stub_size(const struct stat& st) {
  return S_ISREG(st.st_mode) && st.st_size == static_cast<off_t>(kStubSize);
}

bool has_stub_size(int fd) {
  struct stat st;
  return sys::fstat(fd, &st) == 0 && has_stub_size(st);
}

bool may_be_stub(int fd) {
  struct stat st;
  if (sys::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return false;
  return has_stub_size(st) || claims_to_be_stub(fd, static_cast<uint64_t>(st.st_size));
}

bool is_stub_at(int directory, const char* path, int flags, const struct stat& st, Layout* layout) {
  if (!has_stub_size(st)) return false;
  if (size_if_open(st, &layout->logical_size)) return true;
  if (may_have_locks_on(st)) return false;
  const int saved_errno = errno;
  const int nofollow = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0;
  // NONBLOCK, because the name may have become a FIFO meanwhile.
  const Fd fd(sys::openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | nofollow));
  struct stat opened;
  const bool stub = fd && sys::fstat(fd.get(), &opened) == 0 && is_stub(fd.get(), opened, layout);
  if (stub) layout->logical_size = current_size(fd.get(), *layout);
  errno = saved_errno;
  return stub;
}

bool is_stub_at(int directory, const char* path, int flags, Layout* layout) {
  if (path == nullptr || *path == '\0') return false;
  const int saved_errno = errno;
  struct stat st;
  const bool found = ::syscall(SYS_newfstatat, directory, path, &st, flags) == 0;
  errno = saved_errno;
  return found && is_stub_at(directory, path, flags, st, layout);
}

void fill_stat(const Layout& layout, struct stat* st) {
  st->st_size = static_cast<off_t>(layout.logical_size);
  st->st_blocks = static_cast<blkcnt_t>((layout.logical_size + 511) / 512);
  st->st_blksize = kPreferredIoBytes;
}

namespace {

constexpr const char* kRefusals[] = {
    "cannot be mapped shared to write, or so large (mmap: ENODEV)",
    "cannot replace an open stream (freopen: ENOTSUP)",
    "cannot be read or written by aio (ENOSYS)",
    "cannot be read or written as wide characters (ENOTSUP)",
    "cannot be opened to write for a spawned child (posix_spawn: ENOTSUP)",
    "cannot be locked to write by one descriptor (F_OFD_SETLK: EINVAL)",
    "cannot be read or written by io_submit or a ring's registered files (EIO)",
    "its map cannot grow (mremap: ENOMEM)",
    "cannot be read by a program that has an io_uring (EIO; graphlane run --volume VOL)",
};
static_assert(sizeof kRefusals / sizeof kRefusals[0] == kRefusalCount);

std::atomic<bool> explained[kRefusalCount];

}  // namespace

void explain_once(Refusal refusal, std::string_view path) {
  const int kind = static_cast<int>(refusal);
  if (explained[kind].exchange(true, std::memory_order_relaxed)) return;
  complain(path,
           Text<256>()
               .operator<<(kRefusals[kind])
               .operator<<(" without a mount; run it without --no-mount, or over graphlane mount")
               .view());
}

void explain_once(Refusal refusal, int fd) {
  static PathText path;  // under the SlowLock
  if (explained[static_cast<int>(refusal)].load(std::memory_order_relaxed)) return;
  if (in_vfork_child()) return explain_once(refusal);
  // A caller that already holds the lock may use the buffer, too.
  const SlowLockGuard lock(slow_lock);
  find_path(fd, &path);
  explain_once(refusal, path.view());
}

}  // namespace graphlane::shim
