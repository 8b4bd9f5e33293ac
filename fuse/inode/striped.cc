#include "fuse/inode/striped.h"

#include <sys/file.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "fuse/ops/filesystem.h"
#include "iomgr/base/files/file_attributes.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/process/log.h"
#include "iomgr/volume/parts/never_synced.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::fuse {
namespace {

constexpr auto kTakeOverInterval = std::chrono::milliseconds(10);

int device_fd(const Volume& volume, uint32_t device_index) {
  return volume.devices()[device_index].root_fd.get();
}

std::string name_of(const Volume& volume, const struct stat& stub) {
  return fmt::format("{}: inode {}", volume.root(), stub.st_ino);
}

Outcome<std::shared_ptr<StripedFile>> open_with(const Volume& volume, int stub_fd,
                                                const Layout& layout, const struct stat& stub,
                                                int flags) {
  return StripedFile::open(volume, stub_fd, layout, name_of(volume, stub), flags);
}

template <class T>
Result<T> or_log(Outcome<T> opened) {
  if (opened) return std::move(*opened);
  log_line(opened.error().text);
  return Errno{opened.error().code};
}

// The file of a name; links are not followed.
struct Named {
  Fd fd;  // O_PATH; none: no such file
  struct stat stat = {};
  bool is_striped = false;
  bool is_unknown = false;  // this process cannot read it
  Layout layout = {};       // if is_striped
};
Named look_at_name(const Volume& volume, int directory_fd, const char* name) {
  Named found;
  found.fd.reset(::openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found.fd || ::fstat(found.fd.get(), &found.stat) != 0) return {};
  const StubView view = StubCache().look(found.fd.get(), found.stat);
  found.is_striped =
      view.striped() && verify_ownership(volume, found.fd.get(), view.layout, found.stat);
  if (found.is_striped) found.layout = view.layout;
  found.is_unknown = view.error != 0 || view.unreadable;
  return found;
}

// Defects of the parts become EIO for the caller of open(2). A passing shortage keeps its errno.
Result<std::shared_ptr<StripedFile>> or_io_error(Outcome<std::shared_ptr<StripedFile>> file) {
  auto opened = or_log(std::move(file));
  if (opened) return opened;
  const int code = opened.error().code;
  return code == ENOMEM || code == EMFILE || code == ENFILE ? opened : Errno{EIO};
}

// Applies `change` to each device's part. If one fails, applies `undo` to those before it.
template <class Change, class Undo>
Result<void> all_or_none(const Volume& volume, const Change& change, const Undo& undo) {
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    if (change(device_fd(volume, d)) == 0) continue;
    const Errno reason = last_errno();
    while (d-- > 0) undo(device_fd(volume, d));
    return reason;
  }
  return {};
}

// The part, checked again: another user may have replaced it since ownership was verified
// (striped.h).
Fd find_part_of(int root_fd, const Uuid& file_id, uid_t owner) {
  Fd part = find_part(root_fd, file_id);
  struct stat st;
  if (!part) return part;
  if (::fstat(part.get(), &st) == 0 && st.st_uid == owner) return part;
  errno = EPERM;
  return {};
}

// Gives a record beside the part the part's owner and mode. 0, or -1 and errno.
int follow_part(int root_fd, const Layout& layout, const Fd& part) {
  const int error = share_part_access(part.get(), part_of(root_fd, layout));
  if (error != 0) errno = error;
  return error == 0 ? 0 : -1;
}

// Finishes a new file: binds the parts to the stub, then writes the stub, which names its own
// inode.
Result<LiveFiles::Writer> open_new(Filesystem& fs, Layout layout, const NewParts& parts, Fd stub) {
  struct stat st;
  const Result<StubSeen> seen = identify_stub(stub.get());
  if (!seen) return seen.error();
  if (::fstat(stub.get(), &st) != 0) return last_errno();
  layout.identity = seen->identity;
  layout.is_new = true;
  const std::string name = name_of(*fs.volume, st);
  std::vector<int> fds;
  for (const Fd& part : parts) fds.push_back(part.get());
  if (Outcome<void> bound = bind_parts(*fs.volume, fds, layout, stub.get(), PartRecord::kNew, name);
      !bound) {
    log_line(bound.error().text);
    return Errno{bound.error().code};
  }
  if (Result<void> written = write_new_stub(stub.get(), layout); !written) return written.error();
  return or_log(fs.live.acquire(layout, std::move(stub), name, nullptr));
}

}  // namespace

Outcome<void> verify_ownership(const Volume& volume, int stub_fd, const Layout& layout,
                               const struct stat& stub) {
  return verify_parts(volume, stub_fd, layout, name_of(volume, stub));
}

int complete_never_synced(const Volume& volume, int stub_fd, const Layout& layout) {
  if (!layout.is_new || has_no_name(stub_fd)) return 0;
  const Result<StubSeen> seen = identify_stub(stub_fd);
  if (!seen) return seen.error().code;
  const PartsOwner owner{.stub = *seen, .volume_format = volume.format()};
  const Result<void, PartError> owned = verify_named_parts(volume.device_roots(), layout, owner);
  if (owned || owned.error().ownership != Ownership::kNeverSynced) return 0;
  return remake_parts(volume.device_roots(), layout, stub_fd, owner);
}

void show_as_striped(Filesystem& fs, const Layout& layout, struct stat* st) {
  const PartsStat parts = stat_parts(*fs.volume, layout);
  uint64_t size = layout.logical_size;
  if (const auto live = fs.live.find(layout.file_id, *st)) {
    struct stat grown;
    if (live->settle() && ::fstat(live->stub_fd(), &grown) == 0) {
      st->st_mtim = grown.st_mtim;
      st->st_ctim = grown.st_ctim;
    }
    size = live->size();
  } else if (layout.state == FileState::kOpen) {
    size = std::max(parts.open.bytes, parts.open.promised_bytes);
  }
  st->st_size = static_cast<off_t>(size);
  st->st_blocks = static_cast<blkcnt_t>(parts.block_count);
}

Result<std::shared_ptr<StripedFile>> open_shared(Filesystem& fs, Inode& inode, int path_fd,
                                                 const Layout& layout, const struct stat& stub,
                                                 AccessTime access_time) {
  if (auto shared = inode.stub.opened(layout.file_id)) return shared;
  // The read of the stub below moves the access time.
  Fd held = access_time == AccessTime::kMoves ? reopen(path_fd, O_RDONLY)
                                              : reopen_keeping_atime(path_fd, O_RDONLY);
  if (!held) return last_errno();
  hold_parts(held.get());
  Layout now;
  const Result<StubVerdict> verdict = read_stub(held.get(), kStubSize, &now);
  if (!verdict) return verdict.error();
  if (*verdict != StubVerdict::kStub || now.file_id != layout.file_id) return Errno{ESTALE};
  now = current_layout(*fs.volume, now);
  auto opened = open_with(*fs.volume, held.get(), now, stub, O_RDWR);
  if (!opened && (opened.error().code == EACCES || opened.error().code == EROFS)) {
    opened = open_with(*fs.volume, held.get(), now, stub, O_RDONLY);
  }
  // Another mount has removed the file, and its parts with it.
  if (!opened && opened.error().code == ENOENT && has_no_name(held.get())) return Errno{ESTALE};
  auto file = or_io_error(std::move(opened));
  if (!file) return file;
  (*file)->hold(std::move(held));
  return inode.stub.share(*file);
}

Result<std::shared_ptr<StripedFile>> open_parts_to_read(const Volume& volume, int stub_fd,
                                                        const Layout& layout,
                                                        const struct stat& stub) {
  return or_io_error(open_with(volume, stub_fd, layout, stub, O_RDONLY));
}

Result<LiveFiles::Writer> open_live(Filesystem& fs, Inode& inode, const Layout& layout,
                                    const struct stat& stub, std::chrono::milliseconds patience) {
  const std::string name = name_of(*fs.volume, stub);
  const Result<HostPath> path = fs.inodes.path(inode);
  if (!path) return path.error();
  std::shared_ptr<StripedFile> shared = inode.stub.opened(layout.file_id);
  if (!shared && !fs.live.find(layout.file_id, stub)) {
    auto opened = open_shared(fs, inode, path->get(), layout, stub, AccessTime::kStays);
    if (!opened) return opened.error();
    shared = std::move(*opened);
  }
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    Fd fd = reopen_keeping_atime(path->get(), O_RDWR);
    if (!fd) return last_errno();
    auto live = fs.live.acquire(layout, std::move(fd), name, shared);
    if (live && live->is_first()) {
      fs.invalidation.see_taken(inode, layout.file_id, (*live)->stub_fd());
    }
    const bool busy = !live && live.error().code == EBUSY;
    if (busy && patience == patience.zero()) return Errno{EBUSY};
    if (!busy || std::chrono::steady_clock::now() > deadline) return or_log(std::move(live));
    std::this_thread::sleep_for(kTakeOverInterval);
  }
}

Result<LiveFiles::Writer> create_striped(Filesystem& fs, fuse_req_t req, int directory_fd,
                                         const char* name, mode_t mode) {
  const Volume& volume = *fs.volume;
  const NameLock held(volume.root_fd());  // else `check` could take these parts for orphans
  Layout layout{.volume = volume.uuid(),
                .file_id = Uuid::random(),
                .geometry = {.stripe_depth_bytes = volume.stripe_depth_bytes(),
                             .device_count = volume.device_count(),
                             .first_device = fs.next_first_device()},
                .logical_size = 0,
                .state = FileState::kOpen};
  const Outcome<NewParts> made = create_parts(volume, layout, name, false);
  if (!made) {
    log_line(made.error().text);
    return Errno{made.error().code};
  }
  layout.logical_size = kNoBound;
  const auto refuse = [&](Errno reason) {
    (void)remove_parts(volume, layout.file_id);
    return reason;
  };
  Fd fd;
  {
    const AsCaller caller(fs, req);
    fd.reset(
        ::openat(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  }
  if (!fd) return refuse(last_errno());
  auto live = open_new(fs, layout, *made, std::move(fd));
  if (live) return live;
  (void)::unlinkat(directory_fd, name, 0);
  return refuse(live.error());
}

Result<void> resize_striped(Filesystem& fs, fuse_req_t req, LiveFile& live, uint64_t size) {
  if (Result<void> done = live.resize(size); !done) return done;
  live.touch();
  drop_set_id_bits(fs, req, live.stub_fd());
  return {};
}

Result<void> chmod_parts(const Volume& volume, const Layout& layout, const struct stat& stub,
                         mode_t mode) {
  const auto set_mode = [&](int root_fd, mode_t to) {
    const Fd part = find_part_of(root_fd, layout.file_id, stub.st_uid);
    if (!part || ::chmod(ProcPath(part.get()).c_str(), to & 0777) != 0) return -1;
    return follow_part(root_fd, layout, part);
  };
  const Result<void> done = all_or_none(
      volume, [&](int root_fd) { return set_mode(root_fd, mode); },
      [&](int root_fd) { (void)set_mode(root_fd, stub.st_mode); });
  StripedFile::note_changed_rights();
  return done;
}

Result<void> chown_parts(const Volume& volume, const Layout& layout, const struct stat& stub,
                         uid_t uid, gid_t gid) {
  const auto give_to = [&](int root_fd, uid_t owner, uid_t user, gid_t group) {
    const Fd part = find_part_of(root_fd, layout.file_id, owner);
    if (!part || ::fchownat(part.get(), "", user, group, AT_EMPTY_PATH) != 0) return -1;
    return follow_part(root_fd, layout, part);
  };
  const uid_t given_to = uid == static_cast<uid_t>(-1) ? stub.st_uid : uid;
  const Result<void> done = all_or_none(
      volume, [&](int root_fd) { return give_to(root_fd, stub.st_uid, uid, gid); },
      [&](int root_fd) { (void)give_to(root_fd, given_to, stub.st_uid, stub.st_gid); });
  StripedFile::note_changed_rights();
  return done;
}

bool moves_stubs(int directory_fd, const char* name) {
  const Fd fd(::openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0) return false;
  if (S_ISDIR(st.st_mode)) return true;
  const StubView view = StubCache().look(fd.get(), st);
  return view.striped() || view.unreadable || view.error != 0;
}

Result<void> sync_replacement(Filesystem& fs, int directory_fd, const char* name,
                              int replaced_directory_fd, const char* replaced_name) {
  if (!look_at_name(*fs.volume, replaced_directory_fd, replaced_name).is_striped) return {};
  const Named from = look_at_name(*fs.volume, directory_fd, name);
  if (!from.fd || !S_ISREG(from.stat.st_mode)) return {};
  const Fd file = reopen(from.fd.get(), O_RDONLY);
  if (!file) return {};
  if (from.is_striped) {
    std::shared_ptr<StripedFile> parts;
    if (const auto live = fs.live.find(from.layout.file_id, from.stat)) {
      parts = live->file();
      if (Result<void> synced = parts->sync(/*data_only=*/true); !synced) return synced;
    } else {
      auto opened = open_parts_to_read(*fs.volume, from.fd.get(), from.layout, from.stat);
      if (!opened) return {};
      parts = std::move(*opened);
    }
    UnsyncedParts unsynced(*fs.volume);
    Outcome<void> synced = unsynced.add(*parts);
    if (synced) synced = unsynced.sync();
    if (!synced) {
      log_line(synced.error().text);
      return Errno{synced.error().code};
    }
  }
  return ::fsync(file.get()) == 0 ? Result<void>() : last_errno();
}

LastLink::LastLink(const Volume& volume, int directory_fd, const char* name) : volume_(volume) {
  Named found = look_at_name(volume, directory_fd, name);
  if (found.is_unknown) unknown_ = name;
  if (found.is_striped || found.is_unknown) fd_ = std::move(found.fd);
  if (!found.is_striped) return;
  layout_ = found.layout;
  held_.emplace(volume.root_fd());
  (void)volume.note_change();  // before the name goes; on failure the parts stay
  if (found.stat.st_nlink > 1) return;
  if (const Outcome<void> writable = require_writable(volume); !writable) {
    error_ = writable.error().code;
  }
}

// Reads the stub again, because it may name other parts by now (iomgr/admin/restripe.h).
bool LastLink::reap(int replaced_in) {
  struct stat st;
  if (!fd_ || ::fstat(fd_.get(), &st) != 0 || st.st_nlink > 0) return false;
  if (!unknown_.empty()) {
    log_line("{}: {}: removed unread; check --repair removes its parts, if it had some",
             volume_.root(), unknown_);
    return false;
  }
  const StubView view = StubCache().look(fd_.get(), st);
  if (!view.striped() || !verify_ownership(volume_, fd_.get(), view.layout, st)) return false;
  layout_ = view.layout;
  if (replaced_in >= 0 && ::fsync(reopen(replaced_in, O_RDONLY).get()) != 0 && errno != EINVAL) {
    log_line(
        "{}: what has replaced a striped file may not be durable, so its parts stay "
        "(check --repair removes them): {}",
        volume_.root(), error_text(errno));
    return true;
  }
  if (const Outcome<void> removed = remove_parts(volume_, layout_.file_id); !removed) {
    log_line("{} (check --repair will)", removed.error().text);
  }
  return true;
}

}  // namespace graphlane::fuse
