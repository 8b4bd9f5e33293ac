// Without a mount: names and access rights of striped files. The parts follow their stub: they are
// removed with its last name, and carry its owner and mode. Over a mount FUSE does all this.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "iomgr/base/files/reopen.h"
#include "iomgr/volume/kind.h"
#include "iomgr/volume/name_lock.h"
#include "shim/base/slow_lock.h"
#include "shim/base/text.h"
#include "shim/fd/open_file.h"
#include "shim/fd/record_lock.h"
#include "shim/hooks/hooks.h"
#include "shim/hooks/real.h"
#include "shim/locate/check_wait.h"
#include "shim/locate/devices.h"
#include "shim/locate/locate.h"
#include "shim/locate/stub_path.h"

namespace graphlane::shim {
namespace {

VolumeDevices named_volume;  // under the SlowLock

// All zeros: the name does not exist.
struct stat status_of(int directory, const char* path, int flags) {
  struct stat st{};
  if (path == nullptr || ::syscall(SYS_newfstatat, directory, path, &st, flags) != 0) st = {};
  return st;
}

// The stub that a name stands for, if it is one. A file that the process has open is not opened
// again (acquire_open(), may_have_locks_on()).
class NamedStub {
 public:
  NamedStub(int directory, const char* path, int flags)
      : named_(status_of(directory, path, flags)),
        known_(may_be_stub() ? acquire_open(named_) : OpenFileRef()) {
    if (!known_ && may_be_stub() && !may_have_locks_on(named_)) {
      const int nofollow = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0;
      const int how = O_RDONLY | O_CLOEXEC | O_NONBLOCK | nofollow;
      opened_ = *path == '\0' ? reopen(directory, how) : Fd(sys::openat(directory, path, how));
    }
    struct stat st;
    is_one_ = fd() >= 0 && sys::fstat(fd(), &st) == 0 && is_stub(fd(), st, &layout_);
  }
  explicit operator bool() const { return is_one_; }
  const Layout& layout() const { return layout_; }
  int fd() const { return known_ ? known_->stub.fd : opened_.get(); }

  // True also for a stub that this process may not read.
  bool may_be_stub() const { return has_stub_size(named_); }
  bool may_move_stubs() const { return may_be_stub() || S_ISDIR(named_.st_mode); }

 private:
  const struct stat named_;
  const OpenFileRef known_;
  Fd opened_;
  Layout layout_;
  bool is_one_ = false;
};

// Reads the volume.json of the volume that the open directory lies in. Under the SlowLock.
bool read_volume_above(int directory) {
  static PathText text;
  find_path(directory, &text);
  text << "/";
  return read_volume_file(text.view(), &named_volume) == nullptr;
}

// Makes changed names in the path's directory durable. Under the SlowLock.
bool sync_names(int directory, const char* path) {
  const Fd parent = open_parent(directory, path);
  const Fd readable = parent ? reopen(parent.get(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : Fd();
  return readable && (::syscall(SYS_fsync, readable.get()) == 0 || errno == EINVAL);
}

// A change of names of stubs. During it no check looks for them. The parts are removed with a
// file's last name.
class NameChange {
 public:
  // Holds the names of the volume that contains the path, if there is one. False: a check has them.
  bool hold(int directory, const char* path) {
    if (!slow_lock_) slow_lock_.emplace(slow_lock);
    const Fd parent = *slow_lock_ ? open_parent(directory, path) : Fd();
    if (!parent || lies_on_fuse(parent.get()) || !read_volume_above(parent.get())) {
      if (volume_count_ == 0) slow_lock_.reset();
      return true;
    }
    const Fd root = open_volume(named_volume);
    return names_[volume_count_++].try_take(root.get());
  }

  // A name of the stub was perhaps removed; with a path, replaced by another file. Makes that
  // durable first, or a power failure could bring the stub back without its parts.
  void reap(const NamedStub& stub, int directory = AT_FDCWD, const char* path = nullptr) {
    const int saved_errno = errno;
    struct stat st;
    Devices devices;
    // Parts that are left over do no harm: graphlane check --repair removes them.
    if (volume_count_ > 0 && stub && sys::fstat(stub.fd(), &st) == 0 && st.st_nlink == 0 &&
        (path == nullptr || sync_names(directory, path)) &&
        !open_devices_of(stub.fd(), stub.layout(), &named_volume, &devices) &&
        named_volume.format > 1 &&
        verify_parts(devices, named_volume, stub.layout(), stub.fd()) == nullptr) {
      remove_parts(devices, stub.layout());
    }
    errno = saved_errno;
  }

 private:
  std::optional<SlowLockGuard> slow_lock_;  // released last
  NameLock names_[2];
  uint32_t volume_count_ = 0;
};

// Whether the new name would be outside the stub's volume, where it has no devices. mv(1) then
// copies.
bool leaves_volume(const NamedStub& stub, int directory, const char* path) {
  const SlowLockGuard lock(slow_lock);
  if (!lock) return false;
  const Fd parent = open_parent(directory, path);
  if (!parent) return false;  // rename() will report it
  return !read_volume_above(parent.get()) || named_volume.volume != stub.layout().volume;
}

// Syncs the parts of a file on their devices.
int sync_parts(const NamedStub& stub) {
  Devices devices;
  {
    const SlowLockGuard lock(slow_lock);
    if (!lock) return EIO;
    const Failure failure = open_devices_of(stub.fd(), stub.layout(), &named_volume, &devices);
    if (failure) return failure.error;
  }
  for (const int root : devices.roots()) {
    if (const int error = sync_part(root, stub.layout().file_id); error != 0) return error;
  }
  return 0;
}

// Syncs a file that is about to replace a striped one, because the replaced one is removed at once.
// 0 or an errno. Skips a file that may not be read, or has locks of the program.
int sync_replacement(const NamedStub& moved, int directory, const char* path) {
  if (moved) {
    if (const int error = sync_parts(moved); error != 0) return error;
    return ::syscall(SYS_fsync, moved.fd()) == 0 ? 0 : errno;
  }
  const struct stat st = status_of(directory, path, AT_SYMLINK_NOFOLLOW);
  if (!S_ISREG(st.st_mode) || may_have_locks_on(st)) return 0;
  const Fd file(sys::openat(directory, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return !file || ::syscall(SYS_fsync, file.get()) == 0 ? 0 : errno;
}

// A file was renamed from `old_path`, and was a stub or not. Marks it if its new name says the other
// kind (iomgr/volume/kind.h).
void note_kind(bool is_striped, const char* old_path, int directory, const char* path) {
  if (old_path == nullptr || path == nullptr) return;
  const int saved_errno = errno;
  const struct stat st = status_of(directory, path, AT_SYMLINK_NOFOLLOW);
  const SlowLockGuard lock(slow_lock);
  if (S_ISREG(st.st_mode) && lock && (is_striped || !has_stub_size(st))) {
    const Fd parent = open_parent(directory, path);
    if (parent && !lies_on_fuse(parent.get()) && read_volume_above(parent.get())) {
      const bool said = wants_new(last_name(old_path)), says = wants_new(last_name(path));
      auto wished = kind_by_rename(is_striped ? FileKind::kStriped : FileKind::kPlain, said, says);
      const bool is_small = static_cast<uint64_t>(st.st_size) < size_min_bytes();
      if (wished == FileKind::kStriped && is_small) wished = std::nullopt;
      const Fd file(wished || said != says ? sys::openat(parent.get(), last_name(path),
                                                         O_PATH | O_NOFOLLOW | O_CLOEXEC)
                                           : -1);
      const int error = file ? wish_kind(file.get(), wished) : 0;
      if (error != 0 && wished) {
        complain(path, "keeps the kind of its old name: no attribute can be set");
      }
    }
  }
  errno = saved_errno;
}

template <class Original>
int rename_stub(int old_directory, const char* old_path, int new_directory, const char* new_path,
                Original original, unsigned flags = 0) {
  const int saved_errno = errno;
  bool is_synced = false;
  for (;; wait_for_check()) {
    const NamedStub moved(old_directory, old_path, AT_SYMLINK_NOFOLLOW);
    if (moved && new_path != nullptr && leaves_volume(moved, new_directory, new_path)) {
      errno = EXDEV;
      return -1;
    }
    const NamedStub replaced(new_directory, new_path, AT_SYMLINK_NOFOLLOW);  // or exchanged with it
    if (replaced && !is_synced) {
      if (const int error = sync_replacement(moved, old_directory, old_path); error != 0) {
        errno = error;
        return -1;
      }
      is_synced = true;
    }
    int status;
    {
      NameChange change;
      if (moved.may_move_stubs() && !change.hold(old_directory, old_path)) continue;
      if (replaced.may_move_stubs() && !change.hold(new_directory, new_path)) continue;
      errno = saved_errno;
      status = original();
      change.reap(replaced, new_directory, new_path);
    }
    if (status == 0) note_kind(bool(moved), old_path, new_directory, new_path);
    if (status == 0 && (flags & RENAME_EXCHANGE) != 0) {
      note_kind(bool(replaced), new_path, old_directory, old_path);
    }
    return status;
  }
}

template <class Original>
int remove_stub(int directory, const char* path, Original original) {
  const int saved_errno = errno;
  for (;; wait_for_check()) {
    const NamedStub removed(directory, path, AT_SYMLINK_NOFOLLOW);
    NameChange change;
    if (removed.may_be_stub() && !change.hold(directory, path)) continue;
    errno = saved_errno;
    const int status = original();
    change.reap(removed);
    return status;
  }
}

// Whether the parts belong to the stub, so that they follow it.
bool owns_parts(const NamedStub& stub) {
  if (!stub) return false;
  const int saved_errno = errno;
  const SlowLockGuard lock(slow_lock);
  Devices devices;
  const bool owns = lock && !open_devices_of(stub.fd(), stub.layout(), &named_volume, &devices) &&
                    named_volume.format > 1 &&
                    verify_parts(devices, named_volume, stub.layout(), stub.fd()) == nullptr;
  errno = saved_errno;
  return owns;
}

// Gives the parts the stub's present owner and mode. The caller has checked that they belong to it.
void share_rights(const NamedStub& stub) {
  const int saved_errno = errno;
  const SlowLockGuard lock(slow_lock);
  Devices devices;
  if (lock && !open_devices_of(stub.fd(), stub.layout(), &named_volume, &devices)) {
    (void)share_access(stub.fd(), devices, stub.layout().file_id);
  }
  errno = saved_errno;
}

// Opens the stub first, because the new mode may forbid it.
template <class Original>
int change_rights(int directory, const char* path, int flags, Original original) {
  const int saved_errno = errno;
  const NamedStub stub(directory, path, flags);
  const bool owns = owns_parts(stub);
  errno = saved_errno;
  const int status = original();
  if (status != 0) return status;
  if (stub) {
    if (owns) share_rights(stub);
  } else if (stub.may_be_stub()) {  // it could not be read before, and perhaps can now
    const NamedStub now(directory, path, flags);
    if (owns_parts(now)) share_rights(now);
    errno = saved_errno;
  }
  return status;
}

template <class Original>
int change_rights(int fd, Original original) {
  return change_rights(fd, "", AT_EMPTY_PATH, original);
}

}  // namespace
}  // namespace graphlane::shim

using namespace graphlane;
using namespace graphlane::shim;

int hook_rename(const char* from, const char* to) {
  return rename_stub(AT_FDCWD, from, AT_FDCWD, to, [=] { return real::rename(from, to); });
}

int hook_renameat(int from_directory, const char* from, int to_directory, const char* to) {
  return rename_stub(from_directory, from, to_directory, to,
                     [=] { return real::renameat(from_directory, from, to_directory, to); });
}

int hook_renameat2(int from_directory, const char* from, int to_directory, const char* to,
                   unsigned flags) {
  return rename_stub(
      from_directory, from, to_directory, to,
      [=] { return real::renameat2(from_directory, from, to_directory, to, flags); }, flags);
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
