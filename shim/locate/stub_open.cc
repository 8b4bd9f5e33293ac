#include "shim/locate/stub_open.h"

#include <cerrno>

#include "iomgr/base/files/reopen.h"
#include "iomgr/base/process/blocked_signals.h"
#include "iomgr/volume/name_lock.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "shim/base/process.h"
#include "shim/base/slow_lock.h"
#include "shim/base/text.h"
#include "shim/fd/open_file.h"
#include "shim/hooks/hooks.h"
#include "shim/locate/check_wait.h"
#include "shim/locate/devices.h"
#include "shim/locate/locate.h"
#include "shim/locate/refused_stub.h"
#include "shim/locate/stub_path.h"
#include "shim/write/writer.h"

namespace graphlane::shim {
namespace {

constexpr mode_t kMakersMode = S_IRUSR | S_IWUSR;

// The flags that the open file description keeps.
constexpr int kKeptFlags =
    O_APPEND | O_DIRECT | O_SYNC | O_DSYNC | O_NONBLOCK | O_NOATIME | O_LARGEFILE;

// Under the SlowLock.
VolumeDevices volume;
PathText place_text;

int failed(int error) {
  errno = error;
  return -1;
}

// For a vfork() child, which would open parts in the parent's memory.
int refused_to_child() {
  explain_once(Refusal::kSpawn);
  return ENOTSUP;
}

void close_program_fd(int fd) {
  forget(fd);
  sys::close(fd);
}

// The program's descriptor of a stub that is open for writing, or O_PATH; or -1.
int give_descriptor(Fd stub, int flags, bool is_place = false) {
  stub = lifted(std::move(stub));  // so that the program gets the lowest number
  const Access access = access_of_flags(flags);
  Fd fd = reopen(stub.get(), O_RDONLY | (flags & kKeptFlags));
  if (!fd) return -1;
  if ((flags & O_CLOEXEC) == 0) sys::fcntl(fd.get(), F_SETFD, 0);
  int error = grant(fd.get(), access);
  // A vfork() child needs no parts: it becomes another program.
  if (error == 0 && !in_vfork_child()) error = adopt(fd.get(), is_place ? Fd() : std::move(stub));
  if (error == 0 && (flags & O_TRUNC) != 0) {
    const OpenFileRef file = acquire_stub(fd.get());
    error = file ? resize_striped(file, 0) : EIO;
  }
  if (error == 0) return fd.release();
  close_program_fd(fd.release());
  return failed(error);
}

// With O_PATH: its close ends no record locks.
Fd open_place(int directory, const char* path, int flags) {
  return Fd(sys::openat(directory, path, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW)));
}

// The file of a stub, if this process has it open for writing and may open it so again
// (acquire_open()). Otherwise, and before Linux 5.8, empty.
OpenFileRef acquire_writer(const Fd& place) {
  struct stat st;
  if (!place || sys::fstat(place.get(), &st) != 0 || !has_stub_size(st) ||
      ::syscall(SYS_faccessat2, place.get(), "", W_OK, AT_EMPTY_PATH | AT_EACCESS) != 0) {
    return {};
  }
  OpenFileRef file = acquire_open(st);
  if (file && !file->stub.is_written) return {};
  return file;
}

bool cannot_be_read(int directory, const char* path, int flags) {
  struct stat st;
  const int nofollow = (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  if (::syscall(SYS_newfstatat, directory, path, &st, nofollow) != 0 || !has_stub_size(st)) {
    return false;
  }
  const Fd place = open_place(directory, path, flags);
  if (!place || sys::fstat(place.get(), &st) != 0 || !has_stub_size(st) ||
      ::syscall(SYS_faccessat2, place.get(), "", R_OK, AT_EMPTY_PATH | AT_EACCESS) == 0 ||
      errno != EACCES || lies_on_fuse(place.get())) {
    return false;
  }
  const SlowLockGuard lock(slow_lock);
  if (!lock) return false;
  find_path(place.get(), &place_text);
  return read_volume_file(place_text.view(), &volume) == nullptr;
}

int open_existing(int directory, const char* path, int flags) {
  if ((flags & O_TRUNC) != 0 && in_vfork_child()) return failed(refused_to_child());
  Fd place = open_place(directory, path, flags);
  if (const OpenFileRef writer = acquire_writer(place)) {
    return give_descriptor(std::move(place), flags, true);
  }
  place.reset();
  Fd stub(sys::openat(directory, path, O_RDWR | O_CLOEXEC | (flags & O_NOFOLLOW)));
  return stub ? give_descriptor(std::move(stub), flags) : -1;
}

// Makes a complete stub before it gets its name, so that the name always leads to a stub. Its maker
// may open it and its parts in any case; the requested mode (*mode) is set after that.
Fd make_stub(int directory, const char* name, mode_t* mode, Layout layout, const Devices& devices) {
  Fd stub(sys::openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, *mode));
  if (!stub) return stub;
  int error = 0;
  struct stat st;
  if (sys::fstat(stub.get(), &st) == 0) *mode = st.st_mode & 07777;
  if ((*mode & kMakersMode) != kMakersMode &&
      ::syscall(SYS_fchmod, stub.get(), *mode | kMakersMode) != 0) {
    error = errno;
  }
  const Result<StubSeen> seen = identify_stub(stub.get());
  if (seen) layout.identity = seen->identity;
  if (error == 0) error = seen ? bind_parts(devices, layout, stub.get()) : seen.error().code;
  const Result<void> written = write_new_stub(stub.get(), layout);
  if (error == 0 && !written) error = written.error().code;
  if (error == 0 && ::syscall(SYS_linkat, AT_FDCWD, ProcPath(stub.get()).c_str(), directory, name,
                              AT_SYMLINK_FOLLOW) != 0) {
    error = errno;
  }
  if (error == 0) return stub;
  errno = error;
  return {};
}

// The program's descriptor of a file that it has made. On failure (-1) the file is removed.
int give_made(int directory, const char* path, Fd stub, int flags, mode_t mode) {
  struct stat made, named;
  if (sys::fstat(stub.get(), &made) != 0) return -1;
  const int fd = give_descriptor(std::move(stub), flags & ~O_TRUNC);
  if (fd >= 0 && (mode & kMakersMode) != kMakersMode) (void)hook_fchmod(fd, mode);
  if (fd >= 0) return fd;
  const int error = errno;
  if (::syscall(SYS_newfstatat, directory, path, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
      named.st_ino == made.st_ino && named.st_dev == made.st_dev) {
    (void)hook_unlinkat(directory, path, 0);
  }
  return failed(error);
}

enum class Made { kNotOurs, kThere, kDone, kFailed, kCheckRuns };

// Makes the file if the policy stripes it. *mode is changed as the umask demands. kThere: another
// process has made it meanwhile. kFailed: errno. kCheckRuns: a check holds the volume's names.
Made create(int directory, const char* path, mode_t* mode, Fd* stub) {
  const char* name = last_name(path);
  if (!names_an_entry(name)) return Made::kNotOurs;
  const SlowLockGuard lock(slow_lock);
  if (!lock) return Made::kNotOurs;
  const Fd parent = open_parent(directory, path);
  struct stat st;
  if (!parent || lies_on_fuse(parent.get())) return Made::kNotOurs;
  if (::syscall(SYS_newfstatat, parent.get(), name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
    return Made::kThere;
  }
  find_path(parent.get(), &place_text);
  place_text << "/" << name;
  if (read_volume_file(place_text.view(), &volume) != nullptr || !wants_new(name) ||
      place_text.view().find("/.graphlane/") != std::string_view::npos) {
    return Made::kNotOurs;
  }
  Layout layout{
      .volume = volume.volume,
      .file_id = Uuid::random(),
      .geometry = {.stripe_depth_bytes = volume.stripe_depth_bytes, .device_count = volume.count},
      .logical_size = kNoBound,
      .state = FileState::kOpen,
      .is_new = true};
  // At random, because a short file lies on one device.
  layout.geometry.first_device = layout.file_id.bytes[15] % volume.count;
  if (!layout.geometry.valid()) return Made::kNotOurs;
  if (volume.format == 1) {
    complain(place_text.view(), "a volume of format 1 is read only (graphlane check --upgrade)");
    errno = EROFS;
    return Made::kFailed;
  }
  const Fd root = open_volume(volume);
  NameLock held;  // for check, these parts would be orphans
  if (!held.try_take(root.get())) return Made::kCheckRuns;
  Devices devices;
  if (const Failure failure = devices.open(volume)) {
    complain(failure.subject, failure.reason);
    errno = failure.error;
    return Made::kFailed;
  }
  if (const int error = create_parts(devices, layout); error != 0) {
    errno = error;
    return Made::kFailed;
  }
  *stub = make_stub(parent.get(), name, mode, layout, devices);
  if (*stub) return Made::kDone;
  const int error = errno;
  remove_parts(devices, layout);
  errno = error;
  return Made::kFailed;
}

// Opens the file for the truncation only. 0 or an errno.
int truncate_at(int directory, const char* path, int flags, off_t size) {
  if (const OpenFileRef writer = acquire_writer(open_place(directory, path, flags))) {
    return resize_striped(writer, static_cast<uint64_t>(size));
  }
  if (in_vfork_child()) return refused_to_child();
  const int fd = open_existing(directory, path, O_RDWR | O_CLOEXEC | (flags & O_NOFOLLOW));
  if (fd < 0) return errno == EIO && size == 0 ? empty_refused_stub(directory, path, flags) : errno;
  int error = EIO;
  if (const OpenFileRef file = acquire_stub(fd)) {
    error = resize_striped(file, static_cast<uint64_t>(size));
  }
  close_program_fd(fd);
  return error;
}

// O_RDONLY | O_TRUNC truncates, too.
int truncate_and_read(int directory, const char* path, int flags) {
  if (const int error = truncate_at(directory, path, flags, 0); error != 0) return failed(error);
  const int fd = sys::openat(directory, path, flags & ~(O_TRUNC | O_CREAT));
  forget(fd);
  acquire_stub(fd);
  return fd;
}

}  // namespace

bool may_be_unreadable_stub(int directory, const char* path, int flags) {
  const int saved_errno = errno;
  const bool may_be = cannot_be_read(directory, path, flags);
  errno = saved_errno;
  return may_be;
}

bool open_stub(int directory, const char* path, int flags, mode_t mode, int* fd) {
  const bool writes = may_write(access_of_flags(flags));
  const bool changes = writes || (flags & O_TRUNC) != 0;
  if (path == nullptr || (!changes && (flags & O_CREAT) == 0)) return false;
  if ((flags & (O_PATH | O_DIRECTORY)) != 0) return false;  // O_TMPFILE contains O_DIRECTORY
  const bool exclusive = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
  for (;;) {
    Layout layout;
    if (is_stub_at(directory, path, (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0, &layout)) {
      if (exclusive || !changes) return false;
      *fd = writes ? open_existing(directory, path, flags)
                   : truncate_and_read(directory, path, flags);
      // Once emptied it is a plain file, which libc opens.
      const bool is_refused = *fd < 0 && errno == EIO && (flags & O_TRUNC) != 0;
      if (is_refused && empty_refused_stub(directory, path, flags) == 0) return false;
      if (is_refused) errno = EIO;
      return true;
    }
    if (changes && !exclusive && may_be_unreadable_stub(directory, path, flags)) {
      *fd = failed(EACCES);
      return true;
    }
    if ((flags & O_CREAT) == 0) return false;
    Fd stub;
    switch (create(directory, path, &mode, &stub)) {
      case Made::kNotOurs: return false;
      case Made::kThere:
        // Otherwise libc would open its stub.
        if (is_stub_at(directory, path, (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0,
                       &layout)) {
          continue;
        }
        return false;
      case Made::kDone: *fd = give_made(directory, path, std::move(stub), flags, mode); return true;
      case Made::kFailed: break;
      case Made::kCheckRuns: wait_for_check(); continue;
    }
    if (errno == EEXIST && !exclusive) continue;  // another process has made it
    *fd = -1;
    return true;
  }
}

bool truncate_stub(const char* path, off_t size, int* status) {
  Layout layout;
  int error = size < 0 ? EINVAL : 0;
  if (is_stub_at(AT_FDCWD, path, 0, &layout)) {
    if (error == 0) error = truncate_at(AT_FDCWD, path, 0, size);
  } else if (path != nullptr && may_be_unreadable_stub(AT_FDCWD, path, 0)) {
    error = EACCES;
  } else {
    return false;
  }
  *status = error == 0 ? 0 : failed(error);
  return true;
}

}  // namespace graphlane::shim
