#include "fuse/mount/private_namespace.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "fuse/mount/descriptor_socket.h"
#include "fuse/ops/filesystem.h"
#include "fuse/ops/page_cache_limits.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/process/daemonize.h"
#include "iomgr/base/process/log.h"
#include "iomgr/volume/mount_table.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::fuse {
namespace {

Outcome<void> write_proc_file(const char* path, const std::string& text) {
  const Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  if (!file) return os_error(errno, path, "cannot open");
  const Result<void> written = write_full(file.get(), text.data(), text.size());
  if (!written) return os_error(written.error().code, path, "cannot write");
  return {};
}

// Opens /dev/fuse in the user namespace that mounts, as the kernel demands.
//
// In a user namespace the mount has no allow_other, so the kernel compares users. With allow_other
// it would demand that a process belongs to that namespace. The daemon is outside, so it could not
// look at descriptors that preloaded programs show it, and they would read through the kernel. No
// other user exists there anyway.
Outcome<MountedDevice> mount_device(const Volume& volume, const MountOptions& options,
                                    bool has_users) {
  Fd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device) return os_error(errno, "/dev/fuse", "no private mount: cannot open");
  // The daemon computes the same value from the same options.
  const uint64_t max_read_bytes = largest_request(options);
  const std::string data =
      fmt::format("fd={},rootmode={:o},user_id={},group_id={},max_read={},default_permissions{}",
                  device.get(), static_cast<unsigned>(S_IFDIR), ::geteuid(), ::getegid(),
                  max_read_bytes, has_users ? "" : ",allow_other");
  const std::string& root = volume.root();
  const unsigned long flags =
      MS_NODEV | MS_NOSUID | (options.read_only || volume.format() == 1 ? MS_RDONLY : 0);
  if (::mount(root.c_str(), root.c_str(), kMountType, flags, data.c_str()) != 0) {
    return os_error(errno, root, "no private mount: cannot mount");
  }
  struct statx st;  // must not ask the daemon, which does not answer yet
  if (::statx(AT_FDCWD, root.c_str(), AT_STATX_DONT_SYNC, STATX_INO, &st) != 0) {
    return os_error(errno, root, "no private mount: cannot look at it");
  }
  return MountedDevice{.fuse = std::move(device),
                       .device_number = makedev(st.stx_dev_major, st.stx_dev_minor)};
}

bool lies_in_any(const std::string& path,
                 const std::vector<std::shared_ptr<const Volume>>& volumes) {
  for (const auto& volume : volumes) {
    if (is_within(path, volume->root())) return true;
  }
  return false;
}

// Opens the file again by its name, at the same offset.
Outcome<void> renew(int fd, const std::string& path) {
  const int flags = ::fcntl(fd, F_GETFL);
  const int descriptor_flags = ::fcntl(fd, F_GETFD);
  const Fd fresh(::open(path.c_str(), (flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_CLOEXEC));
  struct stat before, now;
  if (!fresh || ::fstat(fresh.get(), &now) != 0) {
    return os_error(errno, path, "cannot open it anew");
  }
  if (::fstat(fd, &before) != 0 || (before.st_mode & S_IFMT) != (now.st_mode & S_IFMT)) {
    return make_error(ESTALE, "{}: is another file now", path);
  }
  const off_t offset = ::lseek(fd, 0, SEEK_CUR);
  if (offset > 0) (void)::lseek(fresh.get(), offset, SEEK_SET);
  if (::dup3(fresh.get(), fd, (descriptor_flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) < 0) {
    return os_error(errno, path, "cannot open it anew");
  }
  return {};
}

}  // namespace

Outcome<PrivateNamespace> PrivateNamespace::enter() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  PrivateNamespace made;
  if (::unshare(CLONE_NEWNS) != 0) {
    made.has_users = true;
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      return make_error(errno, "no private mount: namespaces are not allowed here: {}",
                        std::strerror(errno));
    }
    // The kernel demands this before an ordinary user maps a group.
    if (Outcome<void> done = write_proc_file("/proc/self/setgroups", "deny"); !done) {
      return done.error();
    }
    const std::string own_uid = fmt::format("{0} {0} 1\n", uid);
    const std::string own_gid = fmt::format("{0} {0} 1\n", gid);
    if (Outcome<void> done = write_proc_file("/proc/self/uid_map", own_uid); !done) {
      return done.error();
    }
    if (Outcome<void> done = write_proc_file("/proc/self/gid_map", own_gid); !done) {
      return done.error();
    }
  }
  // Later mounts of the host still appear here; mounts made here do not appear there.
  if (::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
    return os_error(errno, "/", "no private mount: cannot be made private");
  }
  made.users.reset(::open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC));
  made.mounts.reset(::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  return made;
}

Outcome<void> PrivateNamespace::join() const {
  if (has_users && ::setns(users.get(), CLONE_NEWUSER) != 0) {
    return make_error(errno, "no private mount: the user namespace: {}", std::strerror(errno));
  }
  if (::setns(mounts.get(), CLONE_NEWNS) != 0) {
    return make_error(errno, "no private mount: the mount namespace: {}", std::strerror(errno));
  }
  return {};
}

Outcome<void> PrivateNamespace::mount(const Volume& volume, const MountOptions& options,
                                      int daemon_socket) const {
  const auto mounted = mount_device(volume, options, has_users);
  if (!mounted) return mounted.error();
  if (Result<void> sent = send_mounted(daemon_socket, *mounted); !sent) {
    return os_error(sent.error().code, volume.root(), "no private mount: no daemon");
  }
  const std::optional<Error> report = receive_report(daemon_socket);
  if (!report) return make_error(EIO, "{}: the daemon of the private mount died", volume.root());
  if (report->code != 0) return *report;
  raise_page_cache_limits(mounted->device_number, volume);
  return {};
}

void renew_descriptors(const std::vector<std::shared_ptr<const Volume>>& volumes) {
  char directory[PATH_MAX];
  if (::getcwd(directory, sizeof directory) != nullptr && lies_in_any(directory, volumes) &&
      ::chdir(directory) != 0) {
    log_line("{}: {}", directory, std::strerror(errno));
  }
  DIR* const list = ::opendir("/proc/self/fd");
  if (list == nullptr) return;
  std::vector<int> inherited;
  while (const dirent* entry = ::readdir(list)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] == '.' || fd == ::dirfd(list)) continue;
    if ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) inherited.push_back(fd);
  }
  ::closedir(list);
  for (const int fd : inherited) {
    struct stat st;
    struct statfs fs;
    if (::fstat(fd, &st) != 0 || ::fstatfs(fd, &fs) != 0 || fs.f_type == FUSE_SUPER_MAGIC) continue;
    const bool may_be_stub = S_ISREG(st.st_mode) && st.st_size == static_cast<off_t>(kStubSize);
    if (!may_be_stub && !S_ISDIR(st.st_mode)) continue;
    std::error_code error;
    const std::string path =
        std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error).string();
    if (error || !lies_in_any(path, volumes)) continue;
    if (Outcome<void> renewed = renew(fd, path); !renewed) log_line(renewed.error().text);
  }
}

}  // namespace graphlane::fuse
