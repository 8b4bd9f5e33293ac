// Opening, closing and duplicating. The descriptor is always the kernel's own. The hooks here do
// three things. They make the table forget in time. They open a striped file for writing with its
// parts (stub_open.h). And they protect the library's descriptors from programs that close all.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "iomgr/base/files/passed_fds.h"
#include "shim/fd/open_file.h"
#include "shim/fd/record_lock.h"
#include "shim/hooks/hooks.h"
#include "shim/hooks/real.h"
#include "shim/hooks/standard_streams.h"
#include "shim/locate/foresight.h"
#include "shim/locate/stub_open.h"
#include "shim/locate/stub_path.h"

namespace graphlane::shim {
namespace {

bool is_internal(int fd) { return FdTable::covers(fd) && fd_table.load(fd) == FdEntry::internal(); }

// Registers a new descriptor: the table's entry for its number is obsolete.
int opened(int fd) {
  if (fd < 0) return fd;
  forget(fd);
  follow_standard_stream(fd);
  return fd;
}

// Copies what is known of the first descriptor to the second one at once. If the file has lost its
// name, its parts stay open only while a descriptor is known.
int duplicated(int fd, int duplicate) {
  if (fd == duplicate) return duplicate;
  if (opened(duplicate) >= 0 && !is_known_foreign(fd)) {
    const OpenFileRef known = acquire_stub(fd);
    if (known) acquire_stub(duplicate);
  }
  return duplicate;
}

// Registers a descriptor opened by name. Without a mount the parts of a striped file are removed
// with its last name, so an open file must hold them open.
int opened_by_name(int fd) {
  if (opened(fd) < 0) return fd;
  const int saved_errno = errno;
  if (has_stub_size(fd)) acquire_stub(fd);
  errno = saved_errno;
  return fd;
}

// Whether the library does this open(). errno is unchanged unless it fails.
bool open_ours(int directory, const char* path, int flags, mode_t mode, int* fd) {
  const int saved_errno = errno;
  if (!open_stub(directory, path, flags, mode, fd)) {
    errno = saved_errno;
    return false;
  }
  if (*fd < 0) return true;
  follow_standard_stream(*fd);
  errno = saved_errno;
  return true;
}

// Forgets the numbers of descriptors received by a message (SCM_RIGHTS).
void forget_received(const msghdr& message) {
  for_each_passed(message, [](int fd) { forget(fd); });
}

// Refuses to replace an internal descriptor, because another file would be read as if it were the
// part. dup2() documents EBUSY for a number that is just being opened.
bool may_replace(int target) {
  if (!is_internal(target)) return true;
  errno = EBUSY;
  return false;
}

// dup2() and dup3(). If the call fails, the target is unchanged. It may have been the last
// descriptor of a file without a name, so its parts must stay open meanwhile.
template <class Original>
int replaced(int fd, int target, Original original) {
  if (!may_replace(target)) return -1;
  if (fd == target) return original();
  const OpenFileRef kept = acquire_known_stub(target);
  forget(target);
  const int status = original();
  if (status < 0 && kept) acquire_stub(target);
  return duplicated(fd, status);
}

// Shows the program the access mode that it asked for.
int shown_flags(int fd, int flags) {
  if (is_known_foreign(fd)) return flags;
  const OpenFileRef file = acquire_stub(fd);
  return file ? flags_with_access(flags, file.access()) : flags;
}

int close_span(unsigned first, unsigned last, int flags) {
  return first > last ? 0 : real::close_range(first, last, flags);
}

}  // namespace
}  // namespace graphlane::shim

using namespace graphlane;
using namespace graphlane::shim;

#define OPEN_HOOK(name, parameters, arguments, directory, mode)  \
  int hook_##name parameters {                                   \
    int fd = -1;                                                 \
    foresee(directory, path, flags);                             \
    if (open_ours(directory, path, flags, mode, &fd)) return fd; \
    return opened_by_name(real::name arguments);                 \
  }
OPEN_HOOK(open, (const char* path, int flags, mode_t mode), (path, flags, mode), AT_FDCWD, mode)
OPEN_HOOK(open64, (const char* path, int flags, mode_t mode), (path, flags, mode), AT_FDCWD, mode)
OPEN_HOOK(__open_2, (const char* path, int flags), (path, flags), AT_FDCWD, 0)
OPEN_HOOK(__open64_2, (const char* path, int flags), (path, flags), AT_FDCWD, 0)
OPEN_HOOK(openat, (int at, const char* path, int flags, mode_t mode), (at, path, flags, mode), at,
          mode)
OPEN_HOOK(openat64, (int at, const char* path, int flags, mode_t mode), (at, path, flags, mode), at,
          mode)
OPEN_HOOK(__openat_2, (int at, const char* path, int flags), (at, path, flags), at, 0)
OPEN_HOOK(__openat64_2, (int at, const char* path, int flags), (at, path, flags), at, 0)
#undef OPEN_HOOK

int hook_creat(const char* path, mode_t mode) {
  return hook_open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

int hook_creat64(const char* path, mode_t mode) { return hook_creat(path, mode); }

int hook___open(const char* path, int flags, mode_t mode) { return hook_open(path, flags, mode); }

int hook___open64(const char* path, int flags, mode_t mode) { return hook_open(path, flags, mode); }

// The child will open the file within libc, where no library sees it: that would damage a stub.
int hook_posix_spawn_file_actions_addopen(posix_spawn_file_actions_t* actions, int fd,
                                          const char* path, int flags, mode_t mode) {
  foresee(AT_FDCWD, path, flags);
  const bool changes = may_write(access_of_flags(flags)) || (flags & O_TRUNC) != 0;
  Layout layout;
  if (changes && path != nullptr &&
      (is_stub_at(AT_FDCWD, path, 0, &layout) || may_be_unreadable_stub(AT_FDCWD, path, flags))) {
    explain_once(Refusal::kSpawn, path);
    return ENOTSUP;
  }
  return real::posix_spawn_file_actions_addopen(actions, fd, path, flags, mode);
}

int hook_open_by_handle_at(int mount, file_handle* handle, int flags) {
  return opened(real::open_by_handle_at(mount, handle, flags));
}

int hook_pidfd_getfd(int process, int fd, unsigned flags) {
  return opened(real::pidfd_getfd(process, fd, flags));
}

ssize_t hook_recvmsg(int socket, msghdr* message, int flags) {
  const ssize_t received = real::recvmsg(socket, message, flags);
  if (received >= 0) forget_received(*message);
  return received;
}

int hook_recvmmsg(int socket, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  const int received = real::recvmmsg(socket, messages, count, flags, timeout);
  for (int i = 0; i < received; ++i) forget_received(messages[i].msg_hdr);
  return received;
}

int hook_close(int fd) {
  if (is_internal(fd)) {  // for the program this number is not open
    errno = EBADF;
    return -1;
  }
  forget(fd);
  return real::close(fd);
}

int hook___close(int fd) { return hook_close(fd); }

int hook_close_range(unsigned first, unsigned last, int flags) {
  const bool unshared = (flags & CLOSE_RANGE_UNSHARE) != 0;
  const bool closes = (flags & CLOSE_RANGE_CLOEXEC) == 0;
  if (first > last || unshared) return real::close_range(first, last, flags);
  // Closes the ranges between internal descriptors.
  const unsigned last_known = last < FdTable::kFdMax ? last : FdTable::kFdMax - 1;
  const unsigned limit = static_cast<unsigned>(internal_fd_floor()) * 2;
  const unsigned scanned = last_known < limit ? last_known : limit;
  unsigned begin = first;
  int status = 0;
  for (unsigned fd = first; fd <= scanned; ++fd) {
    if (closes && !is_internal(static_cast<int>(fd))) forget(static_cast<int>(fd));
    if (!is_internal(static_cast<int>(fd))) continue;
    if (fd > begin) status |= close_span(begin, fd - 1, flags);
    begin = fd + 1;
  }
  return status | close_span(begin, last, flags);
}

void hook_closefrom(int first) {
  if (hook_close_range(first < 0 ? 0 : static_cast<unsigned>(first), ~0u, 0) != 0) {
    real::closefrom(first);  // a kernel without close_range
  }
}

int hook_dup(int fd) { return duplicated(fd, real::dup(fd)); }

int hook_dup2(int fd, int target) {
  return replaced(fd, target, [=] { return real::dup2(fd, target); });
}

int hook___dup2(int fd, int target) { return hook_dup2(fd, target); }

int hook_dup3(int fd, int target, int flags) {
  return replaced(fd, target, [=] { return real::dup3(fd, target, flags); });
}

int hook_fcntl(int fd, int command, long argument) {
  int result = 0;
  if (is_lock_command(command) &&
      lock_record(fd, command, reinterpret_cast<struct flock*>(argument), &result)) {
    return result;
  }
  result = real::fcntl(fd, command, argument);
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return duplicated(fd, result);
  if (command == F_GETFL && result >= 0) return shown_flags(fd, result);
  if (command == F_SETFL && result == 0) {  // O_DIRECT on or off
    if (const OpenFileRef file = acquire(fd)) {
      forget(fd);
      acquire(fd);  // before the last reference is gone
    }
  }
  return result;
}

int hook_fcntl64(int fd, int command, long argument) { return hook_fcntl(fd, command, argument); }

int hook___fcntl(int fd, int command, long argument) { return hook_fcntl(fd, command, argument); }
