// getattr and setattr: size, owner, mode and times.
#include <sys/stat.h>

#include <optional>

#include "fuse/inode/open_file.h"
#include "fuse/inode/striped.h"
#include "fuse/ops/operations.h"
#include "iomgr/volume/parts/refused_stub.h"
#include "iomgr/volume/stub/stub_lock.h"

namespace graphlane::fuse {
namespace {

int code_of(const Result<void>& done) { return done ? 0 : done.error().code; }

// An open descriptor keeps a striped file's stub at its present parts, so that stub and parts get
// the same mode and owner. None: the file is not striped or cannot be opened.
Fd held_parts(Inode& inode, int path_fd, const struct stat& st) {
  Fd held;
  if (inode.stub.look(path_fd, st).striped()) held = reopen(path_fd, O_RDONLY);
  if (held) hold_parts(held.get());
  return held;
}

// The parts of a file without a name have no names either: their owner and mode stay.
bool has_named_parts(const StubView& view, const struct stat& st) {
  return view.striped() && st.st_nlink > 0;
}

int set_mode(Filesystem& fs, int path_fd, const StubView& view, const struct stat& st,
             mode_t mode) {
  if (has_named_parts(view, st)) {
    const Result<void> moved = chmod_parts(*fs.volume, view.layout, st, mode);
    if (!moved) return moved.error().code;
  }
  return ::chmod(ProcPath(path_fd).c_str(), mode & 07777) != 0 ? errno : 0;
}

int set_owner(Filesystem& fs, int path_fd, const StubView& view, const struct stat& st,
              const struct stat& wanted, int which) {
  const uid_t uid = (which & FUSE_SET_ATTR_UID) != 0 ? wanted.st_uid : static_cast<uid_t>(-1);
  const gid_t gid = (which & FUSE_SET_ATTR_GID) != 0 ? wanted.st_gid : static_cast<gid_t>(-1);
  if (has_named_parts(view, st)) {
    const Result<void> moved = chown_parts(*fs.volume, view.layout, st, uid, gid);
    if (!moved) return moved.error().code;
  }
  const int flags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW;
  return ::fchownat(path_fd, "", uid, gid, flags) != 0 ? errno : 0;
}

int resize_plain(Filesystem& fs, fuse_req_t req, const Fd& file, off_t size) {
  if (::ftruncate(file.get(), size) != 0) return errno;
  drop_set_id_bits(fs, req, file.get());
  return 0;
}

int resize(Filesystem& fs, fuse_req_t req, LiveFile& live, off_t size) {
  return code_of(resize_striped(fs, req, live, static_cast<uint64_t>(size)));
}

// Whether the refused stub provably owns no parts, so that emptying it orphans none.
bool may_be_emptied(const Volume& volume, int stub_fd, const Layout& layout) {
  return is_copied_stub(stub_fd, layout) ||
         (volume.accept(layout, "") && all_name_another_stub(volume.device_roots(), layout));
}

// Sets the size of the handle's file, if there is one, even if the name leads to another file by
// now. `is_refused`: the stub is intact, but the parts are not its own.
int set_size(Filesystem& fs, fuse_req_t req, Inode& inode, int path_fd, const StubView& view,
             bool is_refused, const struct stat& st, off_t size, fuse_file_info* fi) {
  if (fi != nullptr) {
    const OpenFile& file = OpenFile::of(fi);
    return file.live ? resize(fs, req, *file.live, size) : resize_plain(fs, req, file.fd, size);
  }
  if (view.striped()) {
    const Result<LiveFiles::Writer> live = open_live(fs, inode, view.layout, st);
    return live ? resize(fs, req, **live, size) : live.error().code;
  }
  // A copied stub may be emptied, and is a plain file then.
  if (!view.plain() &&
      !(is_refused && size == 0 && may_be_emptied(*fs.volume, path_fd, view.layout))) {
    return view.unreadable ? EACCES : EIO;
  }
  const Fd file = reopen(path_fd, O_WRONLY);
  return file ? resize_plain(fs, req, file, size) : errno;
}

timespec chosen_time(int which, int set, int now, const timespec& time) {
  if ((which & now) != 0) return {.tv_sec = 0, .tv_nsec = UTIME_NOW};
  if ((which & set) != 0) return time;
  return {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
}

int set_times(int path_fd, const struct stat& wanted, int which) {
  const timespec times[2] = {
      chosen_time(which, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, wanted.st_atim),
      chosen_time(which, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, wanted.st_mtim)};
  return ::utimensat(AT_FDCWD, ProcPath(path_fd).c_str(), times, 0) != 0 ? errno : 0;
}

}  // namespace

int op::getattr(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  Inode& inode = fs.inodes.of(ino);
  struct stat st;
  const int error = show_attributes(fs, inode, &st);
  if (error != 0) return error;
  reply::attr(req, &st, attr_timeout_seconds(fs, inode));
  return 0;
}

int op::setattr(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, struct stat* wanted, int which,
                fuse_file_info* fi) {
  Inode& inode = fs.inodes.of(ino);
  if (inode.control) return EROFS;
  const Result<HostPath> path = fs.inodes.path(inode);
  if (!path) return path.error().code;
  const int path_fd = path->get();
  struct stat st;
  if (::fstatat(path_fd, "", &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) return errno;
  if (is_replaced(inode, st)) return ESTALE;
  const Fd held = held_parts(inode, path_fd, st);
  if (held && ::fstat(held.get(), &st) != 0) return errno;
  StubView view = inode.stub.look(path_fd, st);
  if (view.error != 0) return view.error;
  if (view.unreadable && (which & FUSE_SET_ATTR_MODE) != 0 &&
      ::chmod(ProcPath(path_fd).c_str(), wanted->st_mode & 07777) == 0 &&
      ::fstatat(path_fd, "", &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0) {
    view = inode.stub.look(path_fd, st);  // the size change may have made it a plain file
  }
  // A stub gives no right to parts of another volume or another owner.
  const bool is_refused = view.striped() && !verify_ownership(*fs.volume, path_fd, view.layout, st);
  if (is_refused) view.verdict = StubVerdict::kBadField;
  std::optional<ChangeUnderWay> change(&inode);
  const auto live = view.striped() ? fs.live.find(view.layout.file_id) : nullptr;
  if (live) live->recall();
  int error = 0;
  if (view.striped() &&
      (which & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
    error = complete_never_synced(*fs.volume, path_fd, view.layout);
  }
  if (error == 0 && (which & FUSE_SET_ATTR_MODE) != 0) {
    error = set_mode(fs, path_fd, view, st, wanted->st_mode);
  }
  if (error == 0 && (which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
    error = set_owner(fs, path_fd, view, st, *wanted, which);
  }
  if (error == 0 && (which & FUSE_SET_ATTR_SIZE) != 0) {
    error = set_size(fs, req, inode, path_fd, view, is_refused, st, wanted->st_size, fi);
  }
  if (error == 0 && (which & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) != 0) {
    error = set_times(path_fd, *wanted, which);
  }
  change.reset();  // once getattr() has answered, the kernel may forget the inode
  return error != 0 ? error : getattr(fs, req, ino, fi);
}

}  // namespace graphlane::fuse
