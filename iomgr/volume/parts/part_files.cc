#include "iomgr/volume/parts/part_files.h"

#include <cstring>

#include "iomgr/base/files/open_below.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/volume/parts/never_synced.h"
#include "iomgr/volume/stub/part_record_io.h"

namespace graphlane {
namespace {

// A user with access to a file finds its parts by name. Only the volume's owner can list the
// directory.
constexpr mode_t kPartsDirectoryMode = 0711;

// Opens the part for a sync, in the way that its mode permits.
Fd open_to_sync(int root_fd, const PartName& name) {
  Fd part = open_regular(root_fd, name.c_str(), O_RDONLY);
  return part || errno != EACCES ? std::move(part) : open_regular(root_fd, name.c_str(), O_WRONLY);
}

}  // namespace

PartName::PartName(const Uuid& file_id) {
  const UuidText id(file_id);
  std::memcpy(text, "parts/", 6);
  std::memcpy(text + 6, id.text, 2);
  text[8] = '/';
  std::memcpy(text + 9, id.text, sizeof id.text);
}

PartDirectory::PartDirectory(const PartName& name) {
  std::memcpy(text, name.c_str(), sizeof text - 1);
  text[sizeof text - 1] = '\0';
}

int give_access(int directory_fd, const char* name, const struct stat& owner, mode_t mode) {
  const Fd entry(sys::openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat st;
  if (!entry || sys::fstat(entry.get(), &st) != 0) return errno;
  if (S_ISLNK(st.st_mode)) return ELOOP;
  const auto give = [&](uid_t user) {
    return ::syscall(SYS_fchownat, entry.get(), "", user, owner.st_gid, AT_EMPTY_PATH) == 0;
  };
  if (!give(owner.st_uid)) (void)give(static_cast<uid_t>(-1));
  return ::syscall(SYS_fchmodat, AT_FDCWD, ProcPath(entry.get()).c_str(), mode) == 0 ? 0 : errno;
}

int make_names_directory(int root_fd, const char* directory) {
  const auto make = [root_fd](const char* path) {
    if (::syscall(SYS_mkdirat, root_fd, path, kPartsDirectoryMode) != 0) return errno;
    // Independent of the umask. Root may work in a user's volume; the user must be able to remove
    // it.
    struct stat above;
    if (::syscall(SYS_newfstatat, root_fd, "parts", &above, 0) == 0) {
      (void)give_access(root_fd, path, above, kPartsDirectoryMode);
    }
    return 0;
  };
  int error = make(directory);
  if (error == ENOENT && std::strncmp(directory, kSums, sizeof kSums - 1) == 0) {
    error = make(kSums);
    if (error == 0 || error == EEXIST) error = make(directory);
  }
  return error == EEXIST ? 0 : error;
}

// Retries, because a concurrent removal of a part also removes an empty directory.
Result<Fd> create_part(int root_fd, const Uuid& file_id) {
  const PartName name(file_id);
  const PartDirectory directory(name);
  for (;;) {
    if (const int error = make_names_directory(root_fd, directory.c_str()); error != 0) {
      return Errno{error};
    }
    Fd part(open_below(root_fd, name.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
    if (part) return part;
    if (errno != ENOENT) return last_errno();
  }
}

int sync_names(int root_fd, const char* path) {
  const Fd directory(sys::openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A process that may not list the directory has made no name in it.
  if (!directory) return errno == EACCES ? 0 : errno;
  return ::syscall(SYS_fsync, directory.get()) == 0 || errno == EINVAL ? 0 : errno;
}

int sync_part(int root_fd, const Uuid& file_id) {
  const PartName name(file_id);
  const Fd part = open_to_sync(root_fd, name);
  if (!part && errno == EACCES) return 0;
  if (!part) return errno;
  const PartOf which{.root_fd = root_fd, .volume = {}, .file_id = file_id};
  if (const int error = sync_part_record(part.get(), which); error != 0) return error;
  const PartDirectory own(name);
  for (const char* directory : {own.c_str(), "parts"}) {
    if (const int error = sync_names(root_fd, directory); error != 0) return error;
  }
  const int error = sync_names(root_fd, PartSumName(file_id).directory());
  if (error == ENOENT) return 0;  // a small part has no checksums
  return error != 0 ? error : sync_names(root_fd, kSums);
}

void mark_removed(const PartOf& part) {
  const Fd fd = find_part(part.root_fd, part.file_id);
  const uint32_t boot_tag = boot_tag_now();
  PartRecord record;
  if (!fd || boot_tag == 0) return;
  if (read_part_record(fd.get(), part, &record).value_or(RecordVerdict::kNone) !=
      RecordVerdict::kRecord) {
    return;
  }
  record.flags |= PartRecord::kRemoved;
  if (record.boot_tag != boot_tag) record.closed_bytes = record.synced_bytes;
  record.boot_tag = boot_tag;
  (void)write_part_record(fd.get(), part, record);
}

namespace {

// Removes a name below a directory, if it exists, and the directory if it is empty then.
int remove_name(int root_fd, const char* directory, const char* name) {
  const Fd fd(open_below(root_fd, directory, O_PATH | O_DIRECTORY));
  if (!fd) return errno == ENOENT ? 0 : errno;
  if (::syscall(SYS_unlinkat, fd.get(), name, 0) != 0 && errno != ENOENT) return errno;
  (void)::syscall(SYS_unlinkat, root_fd, directory, AT_REMOVEDIR);
  return 0;
}

}  // namespace

int remove_part(int root_fd, const Uuid& file_id) {
  const UuidText name(file_id);
  const PartDirectory own{PartName(file_id)};
  const PartSumName sum(file_id);
  const int error = remove_name(root_fd, own.c_str(), name.c_str());
  return error != 0 ? error : remove_name(root_fd, sum.directory(), sum.last());
}

Fd find_part(int root_fd, const Uuid& file_id) {
  return Fd(open_below(root_fd, PartName(file_id).c_str(), O_PATH));
}

namespace {

// Moves a descriptor to a number above the floor; keeps it if none is free.
int raise_to(int fd, int floor) {
  if (fd < 0 || fd >= floor) return fd;
  const int high = sys::fcntl(fd, F_DUPFD_CLOEXEC, floor);
  if (high < 0) return fd;
  sys::close(fd);
  return high;
}

}  // namespace

int PartFiles::raised(int fd) const { return raise_to(fd, fd_floor_); }

Fd open_part(int root_fd, const Uuid& file_id) {
  const PartName name(file_id);
  Fd part = open_regular(root_fd, name.c_str(), O_RDONLY);
  if (part || errno != EACCES) return part;
  part = Fd(open_below(root_fd, name.c_str(), O_PATH));
  struct stat st;
  if (!part || (sys::fstat(part.get(), &st) == 0 && S_ISREG(st.st_mode))) return part;
  errno = kNotRegular;
  return {};
}

namespace {

// Whether the part was synced, or closed in this boot: then no power failure explains a loss.
bool promises_bytes(const PartRecord& record) {
  return record.synced_bytes > 0 ||
         (record.closed_bytes > 0 && record.boot_tag != 0 && record.boot_tag == boot_tag_now());
}

}  // namespace

Result<void, PartError> verify_named_parts(std::span<const int> roots, const Layout& layout,
                                           const PartsOwner& owner) {
  PartError error{.code = EIO, .ownership = verify_stub(layout, owner.stub, owner.volume_format)};
  if (error.ownership != Ownership::kOwned) return error;
  bool was_synced = false;
  for (uint32_t d = 0; d < roots.size(); ++d) {
    const Fd part = open_part(roots[d], layout.file_id);
    PartSeen seen;
    if (part) {
      const Result<PartSeen> looked = look_at_part(part.get(), part_of(roots[d], layout));
      if (!looked) return PartError{.code = looked.error().code, .device_index = d};
      seen = *looked;
    } else if (errno != ENOENT || !layout.is_new) {
      return PartError{.code = errno, .device_index = d};
    }
    const Ownership found = verify_part(layout, owner.stub, seen, d);
    if (found == Ownership::kOwned) {
      was_synced = was_synced || promises_bytes(seen.record);
      continue;
    }
    if (found != Ownership::kNeverSynced) {
      return PartError{.code = EIO, .ownership = found, .device_index = d};
    }
    if (error.ownership != Ownership::kOwned) continue;
    error.ownership = found;
    error.device_index = d;
  }
  if (error.ownership == Ownership::kOwned) return {};
  if (was_synced) error.ownership = Ownership::kPartMissing;
  return error;
}

// Opens the part once and uses only that descriptor, so that no process can replace the part
// meanwhile.
Result<void, PartError> PartFiles::open_one(int root_fd, const Layout& layout,
                                            uint32_t device_index, const PartsOwner* owner) {
  const int fd = raised(open_regular(root_fd, PartName(layout.file_id).c_str(), flags_).release());
  if (fd < 0) {
    const bool is_lost = errno == ENOENT && owner != nullptr && layout.is_new;
    return PartError{.code = is_lost ? EIO : errno,
                     .ownership = is_lost ? Ownership::kNeverSynced : Ownership::kOwned,
                     .device_index = device_index};
  }
  buffered_[device_index] = fd;
  direct_[device_index].store(-1, std::memory_order_relaxed);  // not shared yet
  count_ = device_index + 1;
  struct stat st;
  if (sys::fstat(fd, &st) != 0) return PartError{.code = errno, .device_index = device_index};
  if (owner != nullptr) {
    PartSeen seen{
        .is_there = true, .uid = st.st_uid, .verdict = RecordVerdict::kNone, .record = {}};
    if (layout.format != kStubFormatUnbound) {
      const Result<RecordVerdict> verdict =
          read_part_record(fd, part_of(root_fd, layout), &seen.record);
      if (!verdict) return PartError{.code = verdict.error().code, .device_index = device_index};
      seen.verdict = *verdict;
    }
    Ownership ownership = verify_part(layout, owner->stub, seen, device_index);
    if (owner->is_lost_and_found && seen.uid == owner->stub.uid) ownership = Ownership::kOwned;
    if (ownership != Ownership::kOwned) {
      return PartError{.code = EIO, .ownership = ownership, .device_index = device_index};
    }
  }
  const bool marks = writable() && writes_without_mount.load(std::memory_order_relaxed);
  if (owner != nullptr && (marks || sums_.verifies())) {
    sums_.open(device_index, part_of(root_fd, layout), fd, Fd(), flags_, raise_to, fd_floor_);
  }
  const uint64_t expected = layout.map().part_size(device_index, layout.logical_size);
  const uint64_t found = static_cast<uint64_t>(st.st_size);
  if (layout.state == FileState::kClosed && found < expected) {
    return PartError{
        .code = EIO, .device_index = device_index, .size_expected = expected, .size_found = found};
  }
  return {};
}

Result<void, PartError> PartFiles::open(std::span<const int> roots, const Layout& layout, int flags,
                                        const PartsOwner* owner) {
  flags_ = flags | O_CLOEXEC;
  sums_.set_verifies(reads_are_verified.load(std::memory_order_relaxed) && owner != nullptr);
  if (owner != nullptr) {
    const Ownership ownership = verify_stub(layout, owner->stub, owner->volume_format);
    if (ownership != Ownership::kOwned) return PartError{.code = EIO, .ownership = ownership};
  }
  for (uint32_t d = 0; d < layout.geometry.device_count; ++d) {
    if (Result<void, PartError> opened = open_one(roots[d], layout, d, owner); !opened) {
      close();
      return opened.error().ownership == Ownership::kNeverSynced
                 ? open_never_synced(roots, layout, *owner)
                 : opened;
    }
  }
  return {};
}

// For reading it is an empty file. For writing its parts are made first (never_synced.h).
Result<void, PartError> PartFiles::open_never_synced(std::span<const int> roots,
                                                     const Layout& layout,
                                                     const PartsOwner& owner) {
  const Result<void, PartError> owned = verify_named_parts(roots, layout, owner);
  const Ownership ownership = owned ? Ownership::kNeverSynced : owned.error().ownership;
  // If another process has just made the parts, the caller retries.
  if (owned || ownership != Ownership::kNeverSynced || writable()) {
    return owned ? PartError{.code = EIO, .ownership = ownership} : owned.error();
  }
  for (uint32_t d = 0; d < layout.geometry.device_count; ++d) {
    const int fd = raised(empty_stand_in().release());
    if (fd < 0) {
      const int error = errno;
      close();
      return PartError{.code = error, .device_index = d};
    }
    buffered_[d] = fd;
    direct_[d].store(fd, std::memory_order_relaxed);  // not shared yet
    count_ = d + 1;
  }
  return {};
}

void PartFiles::adopt(std::span<const int> fds, int flags) {
  flags_ = flags | O_CLOEXEC;
  for (const int fd : fds) {
    buffered_[count_] = raised(fd);
    direct_[count_].store(-1, std::memory_order_relaxed);  // not shared yet
    ++count_;
  }
}

void PartFiles::adopt_sums(std::span<const int> fds, const Layout& layout) {
  for (uint32_t d = 0; d < count_ && d < fds.size(); ++d) {
    // unused: closed
    sums_.open(d, part_of(-1, layout), buffered_[d], Fd(fds[d]), flags_, raise_to, fd_floor_);
  }
  sums_.set_verifies(true);
}

void PartFiles::close() {
  sums_.close();
  for (uint32_t d = 0; d < count_; ++d) {
    // no concurrent reader is left
    const int direct_fd = direct_[d].load(std::memory_order_relaxed);
    if (direct_fd >= 0 && direct_fd != buffered_[d]) sys::close(direct_fd);
    sys::close(buffered_[d]);
  }
  count_ = 0;
}

int PartFiles::direct(uint32_t device_index) const {
  // Acquire and release: a thread that sees the number sees the open file behind it.
  int fd = direct_[device_index].load(std::memory_order_acquire);
  if (fd >= 0) return fd;
  const int saved_errno = errno;
  int mine = raised(reopen(buffered_[device_index], flags_ | O_DIRECT).release());
  const bool is_passing = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
  errno = saved_errno;
  if (mine < 0 && is_passing) return buffered_[device_index];
  if (mine < 0) mine = buffered_[device_index];  // the filesystem has no O_DIRECT
  if (direct_[device_index].compare_exchange_strong(fd, mine, std::memory_order_acq_rel)) {
    if (opened_direct_ != nullptr && mine != buffered_[device_index]) opened_direct_(mine);
    return mine;
  }
  if (mine != buffered_[device_index]) sys::close(mine);
  return fd;
}

}  // namespace graphlane
