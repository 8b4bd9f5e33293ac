// Without a mount: names and rights of striped files. The parts follow their stub:
// they go with its last name, and carry its owner and mode. Over a mount all of it
// is FUSE's.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "iomgr/base/reopen.h"
#include "iomgr/names_held.h"
#include "shim/devices.h"
#include "shim/hooks.h"
#include "shim/locate.h"
#include "shim/real.h"
#include "shim/slow_lock.h"
#include "shim/stub_path.h"
#include "shim/text.h"

namespace graphlane {
namespace {

VolumeDevices volume;  // under the SlowLock

// A stub that a name stands for, if it is one.
struct NamedStub {
  NamedStub(int directory, const char* path, int flags) {
    struct stat st;
    if (path == nullptr || ::syscall(SYS_newfstatat, directory, path, &st, flags) != 0 ||
        !S_ISREG(st.st_mode) || st.st_size != kStubSize) {
      return;
    }
    const int nofollow = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0;
    const int how = O_RDONLY | O_CLOEXEC | O_NONBLOCK | nofollow;
    fd = *path == '\0' ? reopen(directory, how) : Fd(sys::openat(directory, path, how));
    if (!fd || sys::fstat(fd.get(), &st) != 0 || !is_stub(fd.get(), st, &layout)) fd.reset();
  }
  explicit operator bool() const { return static_cast<bool>(fd); }

  Fd fd;
  Layout layout;
};

// The parts go with a file's last name. Constructed before the name goes.
class Reaper {
 public:
  Reaper(int directory, const char* path) : stub_(directory, path, AT_SYMLINK_NOFOLLOW) {}

  // The name has gone, or not.
  void reap() {
    const int saved_errno = errno;
    struct stat st;
    if (stub_ && sys::fstat(stub_.fd.get(), &st) == 0 && st.st_nlink == 0) remove();
    errno = saved_errno;
  }

 private:
  void remove() {
    const SlowLockGuard lock(slow_lock);
    Devices devices;
    // Parts that stay are no harm: graphlane check --repair removes them.
    if (!lock || open_devices_of(stub_.fd.get(), stub_.layout, &volume, &devices)) return;
    const Fd root = open_volume(volume);
    const NamesHeld held(root.get());
    remove_parts(devices, stub_.layout.file_id);
  }
  NamedStub stub_;
};

// Whether the new name of a stub would lie outside its volume: there it would
// have no devices. mv(1) copies then.
bool leaves_volume(const NamedStub& stub, int directory, const char* path) {
  static PathText text;
  const SlowLockGuard lock(slow_lock);
  if (!lock) return false;
  const Fd parent = open_parent(directory, path);
  if (!parent) return false;  // as rename() will say
  find_path(parent.get(), &text);
  text << "/";
  return read_volume_file(text.view(), &volume) != nullptr || volume.volume != stub.layout.volume;
}

template <class Original>
int rename_stub(int old_directory, const char* old_path, int new_directory, const char* new_path,
                Original original) {
  const int saved_errno = errno;
  const NamedStub moved(old_directory, old_path, AT_SYMLINK_NOFOLLOW);
  if (moved && new_path != nullptr && leaves_volume(moved, new_directory, new_path)) {
    errno = EXDEV;
    return -1;
  }
  Reaper replaced(new_directory, new_path);
  errno = saved_errno;
  const int status = original();
  replaced.reap();
  return status;
}

template <class Original>
int remove_stub(int directory, const char* path, Original original) {
  const int saved_errno = errno;
  Reaper removed(directory, path);
  errno = saved_errno;
  const int status = original();
  removed.reap();
  return status;
}

// Gives the parts the stub's owner and mode, as they are now.
void share_rights(const NamedStub& stub) {
  const int saved_errno = errno;
  const SlowLockGuard lock(slow_lock);
  Devices devices;
  if (lock && !open_devices_of(stub.fd.get(), stub.layout, &volume, &devices)) {
    (void)share_access(stub.fd.get(), devices, stub.layout.file_id);
  }
  errno = saved_errno;
}

// The stub is opened first: the new mode may forbid it.
template <class Original>
int change_rights(int directory, const char* path, int flags, Original original) {
  const int saved_errno = errno;
  const NamedStub stub(directory, path, flags);
  errno = saved_errno;
  const int status = original();
  if (status == 0 && stub) share_rights(stub);
  return status;
}

template <class Original>
int change_rights(int fd, Original original) {
  return change_rights(fd, "", AT_EMPTY_PATH, original);
}

}  // namespace
}  // namespace graphlane

using namespace graphlane;

int hook_rename(const char* from, const char* to) {
  return rename_stub(AT_FDCWD, from, AT_FDCWD, to, [=] { return real::rename(from, to); });
}

int hook_renameat(int from_directory, const char* from, int to_directory, const char* to) {
  return rename_stub(from_directory, from, to_directory, to,
                     [=] { return real::renameat(from_directory, from, to_directory, to); });
}

int hook_renameat2(int from_directory, const char* from, int to_directory, const char* to,
                   unsigned flags) {
  return rename_stub(from_directory, from, to_directory, to, [=] {
    return real::renameat2(from_directory, from, to_directory, to, flags);
  });
}

int hook_unlink(const char* path) {
  return remove_stub(AT_FDCWD, path, [=] { return real::unlink(path); });
}

int hook_unlinkat(int directory, const char* path, int flags) {
  return remove_stub(directory, path, [=] { return real::unlinkat(directory, path, flags); });
}

int hook_remove(const char* path) {
  return remove_stub(AT_FDCWD, path, [=] { return real::remove(path); });
}

int hook_chmod(const char* path, mode_t mode) {
  return change_rights(AT_FDCWD, path, 0, [=] { return real::chmod(path, mode); });
}

int hook_fchmod(int fd, mode_t mode) {
  return change_rights(fd, [=] { return real::fchmod(fd, mode); });
}

int hook_fchmodat(int directory, const char* path, mode_t mode, int flags) {
  return change_rights(directory, path, flags & AT_SYMLINK_NOFOLLOW,
                       [=] { return real::fchmodat(directory, path, mode, flags); });
}

int hook_chown(const char* path, uid_t owner, gid_t group) {
  return change_rights(AT_FDCWD, path, 0, [=] { return real::chown(path, owner, group); });
}

int hook_lchown(const char* path, uid_t owner, gid_t group) {
  return change_rights(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW,
                       [=] { return real::lchown(path, owner, group); });
}

int hook_fchown(int fd, uid_t owner, gid_t group) {
  return change_rights(fd, [=] { return real::fchown(fd, owner, group); });
}

int hook_fchownat(int directory, const char* path, uid_t owner, gid_t group, int flags) {
  return change_rights(directory, path, flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH),
                       [=] { return real::fchownat(directory, path, owner, group, flags); });
}
