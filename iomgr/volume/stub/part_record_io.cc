#include "iomgr/volume/stub/part_record_io.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/stat.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "iomgr/base/crc32c.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/open_below.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/base/sys.h"
#include "iomgr/volume/parts/part_files.h"

namespace graphlane {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr unsigned kIdentityMask = STATX_INO | STATX_BTIME | STATX_UID;

// Runs `attempt`. If it fails with EACCES and the mode lacks `bit`, runs it again with the bit set
// meanwhile, which the part's owner may always do. `attempt` returns 0 or an errno.
template <class Attempt>
int with_mode_bit(int part_fd, mode_t bit, const Attempt& attempt) {
  const int error = attempt();
  struct stat st;
  if (error != EACCES || sys::fstat(part_fd, &st) != 0) return error;
  const ProcPath path(part_fd);
  const mode_t mode = st.st_mode & 07777;
  if ((mode & bit) != 0 || ::syscall(SYS_fchmodat, AT_FDCWD, path.c_str(), mode | bit) != 0) {
    return error;
  }
  const int again = attempt();
  (void)::syscall(SYS_fchmodat, AT_FDCWD, path.c_str(), mode);
  return again;
}

// Reads by the descriptor or, for O_PATH, by its path in /proc. A length or an errno.
Result<size_t> try_get_record(int part_fd, uint8_t* buffer, size_t size) {
  long got = ::syscall(SYS_fgetxattr, part_fd, kPartRecordAttribute, buffer, size);
  if (got < 0 && errno == EBADF) {
    got = ::syscall(SYS_getxattr, ProcPath(part_fd).c_str(), kPartRecordAttribute, buffer, size);
  }
  if (got < 0) return last_errno();
  return static_cast<size_t>(got);
}

Result<size_t> get_record_attribute(int part_fd, uint8_t* buffer, size_t size) {
  Result<size_t> got = size_t{0};
  (void)with_mode_bit(part_fd, S_IRUSR, [&] {
    got = try_get_record(part_fd, buffer, size);
    return got ? 0 : got.error().code;
  });
  return got;
}

int try_set_record(int part_fd, const PartRecordBytes& bytes) {
  if (::syscall(SYS_fsetxattr, part_fd, kPartRecordAttribute, bytes.data(), bytes.size(), 0) == 0) {
    return 0;
  }
  if (errno != EBADF) return errno;
  return ::syscall(SYS_setxattr, ProcPath(part_fd).c_str(), kPartRecordAttribute, bytes.data(),
                   bytes.size(), 0) == 0
             ? 0
             : errno;
}

int set_record_attribute(int part_fd, const PartRecordBytes& bytes) {
  return with_mode_bit(part_fd, S_IWUSR, [&] { return try_set_record(part_fd, bytes); });
}

// Whether the filesystem has no such attributes; false for a transient error. A FUSE filesystem
// without them returns ENOSYS.
bool lacks_attributes(int error) { return error == EOPNOTSUPP || error == ENOSYS; }

// The part's `.sum`, or none. EINVAL: another kind of file, or another owner's.
Fd open_sum(const PartOf& part, int part_fd, int flags) {
  Fd file = open_regular(part.root_fd, PartSumName(part.file_id).c_str(), flags);
  struct stat sum, owner;
  if (!file) return file;
  if (sys::fstat(file.get(), &sum) == 0 && sys::fstat(part_fd, &owner) == 0 &&
      sum.st_uid == owner.st_uid) {
    return file;
  }
  errno = EINVAL;
  return {};
}

// Sets owner and mode as far as permitted.
int share_sum_access(int sum_fd, const struct stat& part) {
  if (::syscall(SYS_fchown, sum_fd, part.st_uid, part.st_gid) != 0) {
    (void)::syscall(SYS_fchown, sum_fd, static_cast<uid_t>(-1), part.st_gid);
  }
  return ::syscall(SYS_fchmod, sum_fd, part.st_mode & 0777) == 0 ? 0 : errno;
}

// As open_sum(), and makes the file for the part's owner if there is none.
Fd open_sum_to_write(const PartOf& part, int part_fd, int flags = O_WRONLY) {
  Fd file = open_sum(part, part_fd, flags);
  if (file || errno != ENOENT) return file;
  const PartSumName name(part.file_id);
  do {
    if (const int error = make_names_directory(part.root_fd, name.directory()); error != 0) {
      errno = error;
      return {};
    }
    file = Fd(open_below(part.root_fd, name.c_str(), flags | O_CREAT | O_EXCL, 0600));
  } while (!file && errno == ENOENT);  // the empty directory was removed meanwhile
  struct stat owner;
  if (file && (sys::fstat(part_fd, &owner) != 0 || share_sum_access(file.get(), owner) != 0)) {
    return {};
  }
  return file;
}

Result<RecordVerdict> read_sum_head(int part_fd, const PartOf& part, PartRecord* record) {
  constexpr int kSumReadsMax = 4;  // a writer may be active
  const Fd file = open_sum(part, part_fd, O_RDONLY);
  if (!file && errno == ENOENT) return RecordVerdict::kNone;
  if (!file) return last_errno();
  for (int i = 1;; ++i) {
    PartRecordBytes bytes;
    const Result<size_t> got = pread_full(file.get(), bytes.data(), bytes.size(), 0);
    if (!got) return got.error();
    const RecordVerdict verdict =
        decode_part_record({bytes.data(), *got}, part.volume, part.file_id, record);
    if (verdict != RecordVerdict::kBadChecksum || i == kSumReadsMax) return verdict;
  }
}

}  // namespace

PartSumName::PartSumName(const Uuid& file_id) {
  const UuidText id(file_id);
  const size_t length = std::strlen(id.c_str());
  assert(length == 32);
  std::memcpy(folder, "sums/", 5);
  std::memcpy(folder + 5, id.c_str(), 2);
  folder[7] = '\0';
  std::memcpy(text, folder, 7);
  text[7] = '/';
  std::memcpy(text + 8, id.c_str(), length);
  std::memcpy(text + 8 + length, ".sum", sizeof ".sum");
}

Result<StubSeen> identify_stub(int fd) {
  struct statx seen;
  if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, kIdentityMask, &seen) != 0) return last_errno();
  StubSeen stub{.identity = {.inode = seen.stx_ino, .born = 0}, .uid = seen.stx_uid};
  if ((seen.stx_mask & STATX_BTIME) != 0) {
    stub.identity.born = seen.stx_btime.tv_sec * kNsPerSecond + seen.stx_btime.tv_nsec;
  } else {
    int number = 0;
    if (::syscall(SYS_ioctl, fd, FS_IOC_GETVERSION, &number) == 0) {
      stub.identity.born = static_cast<uint32_t>(number);
    }
  }
  return stub;
}

Result<RecordVerdict> read_part_record(int part_fd, const PartOf& part, PartRecord* record) {
  uint8_t bytes[kPartRecordSize];
  const Result<size_t> got = get_record_attribute(part_fd, bytes, sizeof bytes);
  if (got) return decode_part_record({bytes, *got}, part.volume, part.file_id, record);
  const int error = got.error().code;
  if (error == ERANGE) return RecordVerdict::kBadLength;
  if (error == ENODATA) return RecordVerdict::kNone;
  if (lacks_attributes(error)) return read_sum_head(part_fd, part, record);
  return got.error();
}

Result<PartSeen> look_at_part(int part_fd, const PartOf& part) {
  struct stat st;
  if (sys::fstat(part_fd, &st) != 0) return last_errno();
  PartSeen seen{.is_there = true, .uid = st.st_uid, .verdict = RecordVerdict::kNone, .record = {}};
  const Result<RecordVerdict> verdict = read_part_record(part_fd, part, &seen.record);
  if (!verdict) return verdict.error();
  seen.verdict = *verdict;
  return seen;
}

int write_part_record(int part_fd, const PartOf& part, const PartRecord& record) {
  const PartRecordBytes bytes = encode_part_record(record, part.volume, part.file_id);
  const int error = set_record_attribute(part_fd, bytes);
  if (!lacks_attributes(error)) return error;
  const Fd file = open_sum_to_write(part, part_fd);
  if (!file) return errno;
  if (Result<void> written = pwrite_full(file.get(), bytes.data(), bytes.size(), 0); !written) {
    return written.error().code;
  }
  struct stat st;
  if (sys::fstat(file.get(), &st) != 0) return errno;
  if (st.st_size >= static_cast<off_t>(kPartSumHeadSize)) return 0;
  return ::syscall(SYS_ftruncate, file.get(), kPartSumHeadSize) == 0 ? 0 : errno;
}

int sync_part_record(int part_fd, const PartOf& part) {
  if (::syscall(SYS_fsync, part_fd) != 0) return errno;
  uint8_t bytes[kPartRecordSize];
  const Result<size_t> got = get_record_attribute(part_fd, bytes, sizeof bytes);
  return got || !lacks_attributes(got.error().code) ? 0 : sync_part_sums(part_fd, part);
}

int sync_part_sums(int part_fd, const PartOf& part) {
  Fd file = open_sum(part, part_fd, O_RDONLY);
  if (!file && errno == EACCES) file = open_sum(part, part_fd, O_WRONLY);
  if (!file) return errno == ENOENT ? 0 : errno;
  return ::syscall(SYS_fsync, file.get()) == 0 ? 0 : errno;
}

int sync_part_rights(int part_fd, const PartOf& part) {
  if (::syscall(SYS_fsync, part_fd) != 0) return errno;
  if (part.root_fd < 0) return 0;
  const Fd file = open_sum(part, part_fd, O_RDONLY);
  return !file || ::syscall(SYS_fsync, file.get()) == 0 ? 0 : errno;
}

Fd open_part_sum(const PartOf& part, int part_fd, int flags) {
  return open_sum(part, part_fd, flags);
}

Fd create_part_sum(const PartOf& part, int part_fd) {
  return open_sum_to_write(part, part_fd, O_RDWR);
}

int share_part_access(int part_fd, const PartOf& part) {
  const Fd file(open_below(part.root_fd, PartSumName(part.file_id).c_str(), O_PATH));
  struct stat st;
  if (!file) return errno == ENOENT ? 0 : errno;
  struct stat sum;
  if (sys::fstat(file.get(), &sum) != 0) return errno;
  if (!S_ISREG(sum.st_mode) || sum.st_nlink > 1) return 0;  // not ours; a reader finds it damaged
  if (sys::fstat(part_fd, &st) != 0) return errno;
  if (::syscall(SYS_fchownat, file.get(), "", st.st_uid, st.st_gid, AT_EMPTY_PATH) != 0) {
    (void)::syscall(SYS_fchownat, file.get(), "", static_cast<uid_t>(-1), st.st_gid, AT_EMPTY_PATH);
  }
  return ::syscall(SYS_fchmodat, AT_FDCWD, ProcPath(file.get()).c_str(), st.st_mode & 0777) == 0
             ? 0
             : errno;
}

PartRecord part_record_of(const Layout& layout, uint32_t device_index, uint8_t flags) {
  const bool is_closed = layout.state == FileState::kClosed;
  return {.flags = flags,
          .ordinal = device_index,
          .geometry = layout.geometry,
          .generation = layout.generation,
          .stub = layout.identity,
          .synced_bytes = is_closed ? layout.logical_size : 0,
          .boot_tag = is_closed ? 0 : boot_tag_now()};
}

uint32_t boot_tag_now() {
  static std::atomic<uint32_t> known{0};
  const uint32_t before = known.load(std::memory_order_relaxed);  // orders no other memory
  if (before != 0) return before;
  const Fd file(sys::openat(AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  uint8_t text[64];
  const Result<size_t> got = read_full(file.get(), text, sizeof text);
  if (!got || *got == 0) return 0;
  const uint32_t tag = crc32c(text, *got);
  known.store(tag != 0 ? tag : 1, std::memory_order_relaxed);
  return tag != 0 ? tag : 1;
}

}  // namespace graphlane
