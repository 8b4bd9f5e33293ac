#include "fuse/striped.h"

#include <sys/file.h>

#include <array>
#include <cstring>

#include "fuse/log.h"
#include "iomgr/part_files.h"
#include "iomgr/volume_files.h"

namespace graphlane {
namespace {

constexpr blksize_t kPreferredIoBytes = 1 << 20;

int device_fd(const Volume& volume, uint32_t device_index) {
  return volume.devices()[device_index].root_fd.get();
}

// See the header: parts of another owner are not his to read or remove.
bool owns_parts(const Volume& volume, const Layout& layout, const struct stat& stub) {
  if (stub.st_uid == 0 || ::geteuid() != 0) return true;
  const PartName name(layout.file_id);
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    struct stat part;
    if (::fstatat(device_fd(volume, d), name.c_str(), &part, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (part.st_uid != stub.st_uid) return false;
  }
  return true;
}

}  // namespace

Layout current_layout(const Volume& volume, const Layout& layout) {
  if (layout.state == FileState::kClosed || !volume.accept(layout, "")) return layout;
  const PartName name(layout.file_id);
  std::array<uint64_t, kDeviceCountMax> sizes{};
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    struct stat st;
    if (::fstatat(device_fd(volume, d), name.c_str(), &st, 0) == 0) {
      sizes[d] = static_cast<uint64_t>(st.st_size);
    }
  }
  Layout sized = layout;
  sized.logical_size = layout.map().logical_size({sizes.data(), volume.device_count()});
  return sized;
}

void show_as_striped(const Layout& layout, struct stat* st) {
  st->st_size = static_cast<off_t>(layout.logical_size);
  st->st_blocks = static_cast<blkcnt_t>((layout.logical_size + 511) / 512);
  st->st_blksize = kPreferredIoBytes;
}

Result<std::shared_ptr<const StripedFile>> open_striped(const Volume& volume, const Layout& layout,
                                                        const struct stat& stub) {
  const std::string name = fmt::format("{}: inode {}", volume.root(), stub.st_ino);
  if (volume.accept(layout, name) && !owns_parts(volume, layout, stub)) {
    log_line("{}: the stub belongs to user {}, its parts do not: not served", name, stub.st_uid);
    return Errno{EIO};
  }
  Outcome<std::shared_ptr<const StripedFile>> file =
      StripedFile::open(volume, current_layout(volume, layout), name);
  if (file) return std::move(*file);
  log_line(file.error().text);
  return Errno{file.error().code == ENOMEM ? ENOMEM : EIO};
}

Result<void> chmod_parts(const Volume& volume, const Layout& layout, mode_t mode) {
  const PartName name(layout.file_id);
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    if (::fchmodat(device_fd(volume, d), name.c_str(), mode & 0777, 0) != 0) return last_errno();
  }
  return {};
}

Result<void> chown_parts(const Volume& volume, const Layout& layout, uid_t uid, gid_t gid) {
  const PartName name(layout.file_id);
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    if (::fchownat(device_fd(volume, d), name.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW) != 0) {
      return last_errno();
    }
  }
  return {};
}

bool moves_stubs(int directory_fd, const char* name) {
  const Fd fd(::openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0) return false;
  return S_ISDIR(st.st_mode) || StubCache().look(fd.get(), st).striped();
}

NamesHeld::NamesHeld(const Volume& volume)
    : file_(sys::openat(volume.root_fd(), kLockFile, O_RDONLY | O_CREAT | O_CLOEXEC, 0644)) {
  while (file_ && ::flock(file_.get(), LOCK_SH) != 0 && errno == EINTR) continue;
}

LastLink::LastLink(const Volume& volume, int directory_fd, const char* name) : volume_(volume) {
  Fd fd(::openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0) return;
  const StubView view = StubCache().look(fd.get(), st);
  if (!view.striped() || !volume.accept(view.layout, name)) return;
  if (!owns_parts(volume, view.layout, st)) return;
  layout_ = view.layout;
  fd_ = std::move(fd);
  held_.emplace(volume);
}

void LastLink::reap() {
  struct stat st;
  if (!fd_ || ::fstat(fd_.get(), &st) != 0 || st.st_nlink > 0) return;
  const PartName name(layout_.file_id);
  for (uint32_t d = 0; d < volume_.device_count(); ++d) {
    if (::unlinkat(device_fd(volume_, d), name.c_str(), 0) != 0 && errno != ENOENT) {
      log_line("{}: cannot remove (check --repair will): {}",
               volume_.part_path(d, layout_.file_id), std::strerror(errno));
    }
  }
}

}  // namespace graphlane
