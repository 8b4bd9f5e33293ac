// System calls, straight to the kernel.
//
// The preload library links this code into programs, and replaces their read(), open() and
// close(). iomgr's calls on its own descriptors must not come back through those replacements. So
// they do not use libc's names. Results and errno are as libc's. 64-bit Linux only: there the
// kernel's struct stat is glibc's, and offsets fit one register.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace graphlane::sys {

static_assert(sizeof(long) == 8, "Graphlane is for 64-bit Linux");

inline ssize_t read(int fd, void* buffer, size_t length) {
  return ::syscall(SYS_read, fd, buffer, length);
}
inline ssize_t write(int fd, const void* buffer, size_t length) {
  return ::syscall(SYS_write, fd, buffer, length);
}
inline ssize_t pread(int fd, void* buffer, size_t length, uint64_t offset) {
  return ::syscall(SYS_pread64, fd, buffer, length, offset);
}
inline ssize_t pwrite(int fd, const void* buffer, size_t length, uint64_t offset) {
  return ::syscall(SYS_pwrite64, fd, buffer, length, offset);
}
// The last argument of the vectored calls is the offset's upper half, which a
// 64-bit kernel ignores.
inline ssize_t preadv(int fd, const iovec* iov, uint32_t count, uint64_t offset) {
  return ::syscall(SYS_preadv, fd, iov, count, offset, 0);
}
// Reads without a device. EAGAIN: the first byte is not in the page cache; short: a later one is
// not. EOPNOTSUPP: the filesystem does not support this.
inline ssize_t pread_cached(int fd, void* buffer, size_t length, uint64_t offset) {
  const iovec piece{.iov_base = buffer, .iov_len = length};
  return ::syscall(SYS_preadv2, fd, &piece, 1, offset, 0, RWF_NOWAIT);
}
// Whether the byte must come from a device, as far as the filesystem tells.
inline bool would_wait(int fd, uint64_t offset) {
  char byte;
  return pread_cached(fd, &byte, 1, offset) < 0 && errno == EAGAIN;
}
inline ssize_t pwritev(int fd, const iovec* iov, uint32_t count, uint64_t offset) {
  return ::syscall(SYS_pwritev, fd, iov, count, offset, 0);
}
inline int openat(int directory, const char* path, int flags, mode_t mode = 0) {
  return static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode));
}
inline int close(int fd) { return static_cast<int>(::syscall(SYS_close, fd)); }
inline int fcntl(int fd, int command, long argument = 0) {
  return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
}
inline int fstat(int fd, struct stat* st) { return static_cast<int>(::syscall(SYS_fstat, fd, st)); }
inline off_t lseek(int fd, off_t offset, int whence) {
  return ::syscall(SYS_lseek, fd, offset, whence);
}
inline int fadvise(int fd, uint64_t offset, uint64_t length, int advice) {
  return static_cast<int>(::syscall(SYS_fadvise64, fd, offset, length, advice));
}
// Private, zeroed memory; null: none is left.
inline void* map_memory(size_t length) {
  const long address = ::syscall(SYS_mmap, nullptr, length, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address == -1 ? nullptr : reinterpret_cast<void*>(address);
}
// Replaces the memory at the address by private memory: a file's, or (fd -1) zeroed. False: errno.
inline bool map_over(void* address, size_t length, int fd, uint64_t offset) {
  const int flags = MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
  return ::syscall(SYS_mmap, address, length, PROT_READ | PROT_WRITE, flags, fd, offset) != -1;
}
inline int munmap(void* address, size_t length) {
  return static_cast<int>(::syscall(SYS_munmap, address, length));
}
// Copies memory of this process onto itself. Returns the bytes, fewer where some is not mapped.
inline ssize_t copy_onto_itself(const iovec* iov, uint32_t count) {
  return ::syscall(SYS_process_vm_readv, ::syscall(SYS_getpid), iov, count, iov, count, 0);
}
inline int madvise(void* address, size_t length, int advice) {
  return static_cast<int>(::syscall(SYS_madvise, address, length, advice));
}

}  // namespace graphlane::sys
