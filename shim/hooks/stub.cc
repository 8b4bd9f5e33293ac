// Without a mount: calls that reveal a striped file's size return the logical one. Calls that would
// reach the stub's bytes are refused.
//
// A copy within the kernel (copy_file_range, sendfile, splice, a reflink) is refused with the errno
// that makes programs fall back to read() and write().
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "iomgr/base/sys.h"
#include "shim/base/text.h"
#include "shim/fd/open_file.h"
#include "shim/hooks/hooks.h"
#include "shim/hooks/real.h"
#include "shim/locate/stub_path.h"

namespace graphlane::shim {
namespace {

// The times of a file that this process has written to.
void show_times(const OpenFile& file, struct stat* st) {
  show_written(file);
  struct stat now;
  if (sys::fstat(file.stub.fd, &now) != 0) return;
  st->st_mtim = now.st_mtim;
  st->st_ctim = now.st_ctim;
}

int with_logical_size(int status, int directory, const char* path, int flags, struct stat* st) {
  Layout layout;
  if (status != 0 || !has_stub_size(*st)) return status;
  if ((flags & AT_EMPTY_PATH) != 0 && path != nullptr && *path == '\0') {
    const OpenFileRef file = acquire_stub(directory);
    if (file && file->origin == Origin::kStub) {
      if (file->stub.is_written) show_times(*file, st);
      layout.logical_size = file.size();
      fill_stat(layout, st);
    }
    // O_PATH: its file is opened by a link to it.
    const int status_flags = file ? 0 : sys::fcntl(directory, F_GETFL);
    if (status_flags >= 0 && (status_flags & O_PATH) != 0) {
      Text<40> link;
      link << "/proc/self/fd/" << static_cast<uint64_t>(directory);
      if (is_stub_at(AT_FDCWD, link.c_str(), 0, *st, &layout)) fill_stat(layout, st);
    }
  } else if (is_stub_at(directory, path, flags & AT_SYMLINK_NOFOLLOW, *st, &layout)) {
    fill_stat(layout, st);
  }
  return status;
}

int with_logical_size(int status, int fd, struct stat* st) {
  return with_logical_size(status, fd, "", AT_EMPTY_PATH, st);
}

template <auto kOriginal>
[[gnu::noinline]] int fstat_slowly(int fd, struct stat* st) {
  return with_logical_size(kOriginal(fd, st), fd, st);
}

// As read_one() in hooks/read.cc.
template <auto kOriginal>
int fstat_by(int fd, struct stat* st) {
  return is_known_foreign(fd) ? kOriginal(fd, st) : fstat_slowly<kOriginal>(fd, st);
}

// SEEK_END, SEEK_DATA and SEEK_HOLE use the logical size; the offset itself is the kernel's. A
// striped file shows no holes.
off_t seek_stub(int fd, uint64_t size_bytes, off_t offset, int whence) {
  const off_t size = static_cast<off_t>(size_bytes);
  off_t target = 0;
  switch (whence) {
    case SEEK_END:
      if (__builtin_add_overflow(size, offset, &target)) {
        errno = EOVERFLOW;
        return -1;
      }
      break;
    case SEEK_DATA:
    case SEEK_HOLE:
      if (offset < 0 || offset >= size) {
        errno = ENXIO;
        return -1;
      }
      target = whence == SEEK_DATA ? offset : size;
      break;
    default: return sys::lseek(fd, offset, whence);
  }
  return sys::lseek(fd, target, SEEK_SET);
}

// Whether libc's own aio threads would read or write a stub.
bool is_unservable(const aiocb& request) {
  if (!acquire_stub(request.aio_fildes, Group::aio)) return false;
  explain_once(Refusal::kAio, request.aio_fildes);
  return true;
}

bool is_stub(int fd) { return static_cast<bool>(acquire_stub(fd, Group::copy)); }

template <class Value>
Value refuse(int error, Value value) {
  errno = error;
  return value;
}

[[gnu::noinline]] off_t lseek_by_size(int fd, off_t offset, int whence) {
  const OpenFileRef file = acquire_stub(fd);
  if (file && file->origin == Origin::kStub) return seek_stub(fd, file.size(), offset, whence);
  return real::lseek(fd, offset, whence);
}

}  // namespace
}  // namespace graphlane::shim

using namespace graphlane;
using namespace graphlane::shim;

off_t hook_lseek(int fd, off_t offset, int whence) {
  const bool by_size = whence != SEEK_SET && whence != SEEK_CUR;
  return by_size ? lseek_by_size(fd, offset, whence) : real::lseek(fd, offset, whence);
}

off_t hook_lseek64(int fd, off_t offset, int whence) { return hook_lseek(fd, offset, whence); }
off_t hook___lseek(int fd, off_t offset, int whence) { return hook_lseek(fd, offset, whence); }
off_t hook_llseek(int fd, off_t offset, int whence) { return hook_lseek(fd, offset, whence); }

int hook_stat(const char* path, struct stat* st) {
  return with_logical_size(real::stat(path, st), AT_FDCWD, path, 0, st);
}
int hook_stat64(const char* path, struct stat* st) {
  return with_logical_size(real::stat64(path, st), AT_FDCWD, path, 0, st);
}
int hook_lstat(const char* path, struct stat* st) {
  return with_logical_size(real::lstat(path, st), AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, st);
}
int hook_lstat64(const char* path, struct stat* st) {
  return with_logical_size(real::lstat64(path, st), AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, st);
}
int hook_fstat(int fd, struct stat* st) { return fstat_by<real::fstat>(fd, st); }
int hook_fstat64(int fd, struct stat* st) { return fstat_by<real::fstat64>(fd, st); }
int hook_fstatat(int directory, const char* path, struct stat* st, int flags) {
  return with_logical_size(real::fstatat(directory, path, st, flags), directory, path, flags, st);
}
int hook_fstatat64(int directory, const char* path, struct stat* st, int flags) {
  return with_logical_size(real::fstatat64(directory, path, st, flags), directory, path, flags, st);
}

// The names in programs built before glibc 2.33.
int hook___xstat(int version, const char* path, struct stat* st) {
  return with_logical_size(real::__xstat(version, path, st), AT_FDCWD, path, 0, st);
}
int hook___xstat64(int version, const char* path, struct stat* st) {
  return with_logical_size(real::__xstat64(version, path, st), AT_FDCWD, path, 0, st);
}
int hook___lxstat(int version, const char* path, struct stat* st) {
  return with_logical_size(real::__lxstat(version, path, st), AT_FDCWD, path, AT_SYMLINK_NOFOLLOW,
                           st);
}
int hook___lxstat64(int version, const char* path, struct stat* st) {
  return with_logical_size(real::__lxstat64(version, path, st), AT_FDCWD, path, AT_SYMLINK_NOFOLLOW,
                           st);
}
int hook___fxstat(int version, int fd, struct stat* st) {
  return with_logical_size(real::__fxstat(version, fd, st), fd, st);
}
int hook___fxstat64(int version, int fd, struct stat* st) {
  return with_logical_size(real::__fxstat64(version, fd, st), fd, st);
}
int hook___fxstatat(int version, int directory, const char* path, struct stat* st, int flags) {
  return with_logical_size(real::__fxstatat(version, directory, path, st, flags), directory, path,
                           flags, st);
}
int hook___fxstatat64(int version, int directory, const char* path, struct stat* st, int flags) {
  return with_logical_size(real::__fxstatat64(version, directory, path, st, flags), directory, path,
                           flags, st);
}

int hook_statx(int directory, const char* path, int flags, unsigned mask, struct statx* stx) {
  const int status = real::statx(directory, path, flags, mask, stx);
  if (status != 0 || stx->stx_size != kStubSize) return status;
  struct stat st{};
  st.st_dev = makedev(stx->stx_dev_major, stx->stx_dev_minor);
  st.st_ino = stx->stx_ino;
  st.st_ctim = {.tv_sec = stx->stx_ctime.tv_sec, .tv_nsec = stx->stx_ctime.tv_nsec};
  st.st_mode = stx->stx_mode;
  st.st_size = static_cast<off_t>(stx->stx_size);
  with_logical_size(0, directory, path, flags, &st);
  if (st.st_size == static_cast<off_t>(kStubSize)) return status;
  stx->stx_size = static_cast<uint64_t>(st.st_size);
  stx->stx_blocks = static_cast<uint64_t>(st.st_blocks);
  stx->stx_blksize = static_cast<uint32_t>(st.st_blksize);
  return status;
}

ssize_t hook_copy_file_range(int in, off_t* in_offset, int out, off_t* out_offset, size_t count,
                             unsigned flags) {
  if (is_stub(in) || is_stub(out)) return refuse<ssize_t>(EXDEV, -1);
  return real::copy_file_range(in, in_offset, out, out_offset, count, flags);
}
ssize_t hook_sendfile(int out, int in, off_t* offset, size_t count) {
  if (is_stub(in) || is_stub(out)) return refuse<ssize_t>(EINVAL, -1);
  return real::sendfile(out, in, offset, count);
}
ssize_t hook_sendfile64(int out, int in, off_t* offset, size_t count) {
  return hook_sendfile(out, in, offset, count);
}
ssize_t hook_splice(int in, off_t* in_offset, int out, off_t* out_offset, size_t count,
                    unsigned flags) {
  if (is_stub(in) || is_stub(out)) return refuse<ssize_t>(EINVAL, -1);
  return real::splice(in, in_offset, out, out_offset, count, flags);
}

int hook_ioctl(int fd, unsigned long request, void* argument) {
  int source = -1;
  if (request == FICLONE) source = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  if (request == FICLONERANGE && argument != nullptr) {
    source = static_cast<int>(static_cast<file_clone_range*>(argument)->src_fd);
  }
  if (source >= 0 && (is_stub(source) || is_stub(fd))) return refuse(EOPNOTSUPP, -1);
  // Where the stub's own bytes lie says nothing of the file's.
  if ((request == FIBMAP || request == FS_IOC_FIEMAP) && is_stub(fd)) {
    return refuse(EOPNOTSUPP, -1);
  }
  if (request == FIONREAD && argument != nullptr) {
    const OpenFileRef file = acquire_stub(fd);
    const off_t at = file && file->origin == Origin::kStub ? sys::lseek(fd, 0, SEEK_CUR) : -1;
    if (at >= 0) {
      const auto left = static_cast<int64_t>(file.size()) - at;
      *static_cast<int*>(argument) =
          static_cast<int>(std::clamp<int64_t>(left, 0, std::numeric_limits<int>::max()));
      return 0;
    }
  }
  return real::ioctl(fd, request, argument);
}

int hook_aio_read(aiocb* request) {
  if (is_unservable(*request)) return refuse(ENOSYS, -1);
  return real::aio_read(request);
}
int hook_aio_read64(aiocb* request) { return hook_aio_read(request); }

int hook_aio_write(aiocb* request) {
  if (is_unservable(*request)) return refuse(ENOSYS, -1);
  return real::aio_write(request);
}
int hook_aio_write64(aiocb* request) { return hook_aio_write(request); }

int hook_aio_fsync(int operation, aiocb* request) {
  if (is_unservable(*request)) return refuse(ENOSYS, -1);
  return real::aio_fsync(operation, request);
}
int hook_aio_fsync64(int operation, aiocb* request) { return hook_aio_fsync(operation, request); }

int hook_lio_listio(int mode, aiocb* const* requests, int count, sigevent* event) {
  for (int i = 0; i < count; ++i) {
    if (requests[i] == nullptr || requests[i]->aio_lio_opcode == LIO_NOP) continue;
    if (is_unservable(*requests[i])) return refuse(ENOSYS, -1);
  }
  return real::lio_listio(mode, requests, count, event);
}
int hook_lio_listio64(int mode, aiocb* const* requests, int count, sigevent* event) {
  return hook_lio_listio(mode, requests, count, event);
}
