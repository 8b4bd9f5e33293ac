// A plain program that makes its system calls by syscall(2), and prints the result of each. On a
// striped file and on an ordinary one of the same content the output must be the same. usage:
// raw_calls FILE SCRATCH [submit]
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned char buffer[1 << 20];

static void tell(const char* what, long result, size_t bytes) {
  const int error = errno;
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes; ++i) sum = sum * 31 + buffer[i];
  printf("%s: %ld %s %llx\n", what, result, result < 0 ? strerror(error) : "", (unsigned long long)sum);
  memset(buffer, 0, bytes);
  errno = 0;
}
#define TELL(what, call)                                          \
  do {                                                            \
    const long result = (call);                                   \
    tell(what, result, result > 0 && result <= (long)sizeof buffer ? (size_t)result : 0); \
  } while (0)

static int submit(int fd) {
  aio_context_t context = 0;
  if (syscall(SYS_io_setup, 1, &context) != 0) return printf("io_setup: %s\n", strerror(errno)), 0;
  struct iocb block = {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = (unsigned)fd,
                       .aio_buf = (uintptr_t)buffer, .aio_nbytes = 4096};
  struct iocb* blocks[] = {&block};
  struct io_event event;
  if (syscall(SYS_io_submit, context, 1, blocks) != 1) return printf("io_submit: %s\n", strerror(errno)), 0;
  if (syscall(SYS_io_getevents, context, 1, 1, &event, NULL) != 1) return 1;
  tell("io_submit", event.res, 4096);
  return 0;
}

int main(int count, char** words) {
  if (count < 3) return 1;
  const char* path = words[1];
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
  if (fd < 0) return perror(path), 1;
  if (count > 3) return submit(fd);
  struct statx stx;
  TELL("statx", syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_SIZE, &stx) == 0 ? (long)stx.stx_size : -1);
  TELL("statx by name", syscall(SYS_statx, AT_FDCWD, path, 0, STATX_SIZE, &stx) == 0 ? (long)stx.stx_size : -1);
  struct stat st;
  TELL("fstat", syscall(SYS_fstat, fd, &st) == 0 ? (long)st.st_size : -1);
  TELL("newfstatat", syscall(SYS_newfstatat, AT_FDCWD, path, &st, 0) == 0 ? (long)st.st_size : -1);
  TELL("read", syscall(SYS_read, fd, buffer, 70000));
  TELL("pread64", syscall(SYS_pread64, fd, buffer, 200000, 65000));
  struct iovec pieces[] = {{buffer, 100}, {buffer + 100, 99900}};
  TELL("readv", syscall(SYS_readv, fd, pieces, 2));
  TELL("preadv", syscall(SYS_preadv, fd, pieces, 2, 12345L, 0));
  TELL("preadv2", syscall(SYS_preadv2, fd, pieces, 2, 54321L, 0, 0));
  TELL("preadv2 at its place", syscall(SYS_preadv2, fd, pieces, 2, -1L, 0, 0));
  TELL("lseek", syscall(SYS_lseek, fd, -5L, SEEK_END));
  TELL("read at the end", syscall(SYS_read, fd, buffer, 70000));
  TELL("read behind it", syscall(SYS_read, fd, buffer, 70000));
  const int other = (int)syscall(SYS_dup, fd);
  TELL("of a duplicate", syscall(SYS_pread64, other, buffer, 70000, 1L));
  TELL("close", syscall(SYS_close, other));
  TELL("of a closed one", syscall(SYS_pread64, other, buffer, 70000, 1L));
  struct open_how how = {.flags = O_RDONLY};
  const int third = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
  TELL("of openat2", syscall(SYS_read, third, buffer, 70000));
  TELL("into nothing", syscall(SYS_read, third, NULL, 70000L) < 0 ? -1L : 0L);
  TELL("negative", syscall(SYS_pread64, third, buffer, 1, -1L));
  const int out = open(words[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
  TELL("write elsewhere", syscall(SYS_write, out, "abc", 3));
  TELL("write to a reader", syscall(SYS_pwrite64, fd, "abc", 3, 0L));
  long all = 0;  // what a program does when sendfile(2) is refused
  lseek(fd, 0, SEEK_SET);
  for (long n; (n = syscall(SYS_sendfile, out, fd, NULL, 1 << 20)) > 0 ||
               (n < 0 && (n = read(fd, buffer, sizeof buffer)) > 0 && write(out, buffer, (size_t)n) == n);) {
    all += n;
  }
  memset(buffer, 0, sizeof buffer);
  TELL("copied", all);
  void* map = (void*)syscall(SYS_mmap, NULL, 4096L, PROT_READ, MAP_PRIVATE, fd, 65536L);
  if (map != MAP_FAILED) memcpy(buffer, map, 4096);
  tell("mmap", map == MAP_FAILED ? -1 : 0, 4096);
  // Calls that return twice.
  for (int i = 0; i < 3; ++i) {
    const long child = syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    if (child == 0) syscall(SYS_exit_group, 40L + i);
    int status = 0;
    if (waitpid((pid_t)child, &status, 0) != child) return 1;
    TELL("clone", WEXITSTATUS(status));
  }
  TELL("no such call", syscall(400000L, 1L));
  TELL("below nothing", syscall(-1L));
  return 0;
}
