#include "iomgr/volume/parts/never_synced.h"

#include <sys/mman.h>
#include <sys/xattr.h>

#include <ctime>

#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/stub/stub_lock.h"

namespace graphlane {
namespace {

// Another process takes milliseconds to remake some parts.
Result<void> lock_to_remake(int stub_fd) {
  constexpr int kTries = 100;
  constexpr timespec kRemakePause = {.tv_sec = 0, .tv_nsec = 5'000'000};
  Result<void> mine = lock_stub(stub_fd, StubLock::kRemake, F_WRLCK);
  for (int i = 0; i < kTries && !mine && mine.error().code == EBUSY; ++i) {
    ::syscall(SYS_nanosleep, &kRemakePause, nullptr);
    mine = lock_stub(stub_fd, StubLock::kRemake, F_WRLCK);
  }
  return mine;
}

// Empties a part of the stub's own. EIO: the part is missing, or names no stub, so it must be made.
int empty_own_part(int root_fd, const Layout& layout, const StubSeen& stub, uint32_t device_index) {
  const Fd part = open_regular(root_fd, PartName(layout.file_id).c_str(), O_RDWR);
  if (!part) return errno == ENOENT ? EIO : errno;
  const Result<PartSeen> seen = look_at_part(part.get(), part_of(root_fd, layout));
  if (!seen) return seen.error().code;
  if (verify_part(layout, stub, *seen, device_index) != Ownership::kOwned) return EIO;
  return ::syscall(SYS_ftruncate, part.get(), off_t{0}) == 0 ? 0 : errno;
}

// Writes the record last: before it the part names no stub. Sets the owner before the record,
// because a part with a record and another owner would be refused. Sets the mode after the record,
// because the mode may forbid writing it.
int make_own_part(int root_fd, const Layout& layout, const struct stat& stub, mode_t mode,
                  uint32_t device_index) {
  const PartOf which = part_of(root_fd, layout);
  const PartName name(layout.file_id);
  const Result<Fd> part = create_part(root_fd, layout.file_id);
  if (!part) return part.error().code;
  PartRecord record{.flags = PartRecord::kMaking,
                    .ordinal = device_index,
                    .geometry = layout.geometry,
                    .generation = layout.generation,
                    .boot_tag = boot_tag_now()};
  if (const int error = write_part_record(part->get(), which, record); error != 0) return error;
  if (const int error = give_access(root_fd, name.c_str(), stub, 0600); error != 0) return error;
  struct stat made;
  if (sys::fstat(part->get(), &made) != 0) return errno;
  if (made.st_uid != stub.st_uid) return EACCES;
  record.flags = PartRecord::kNew;
  record.stub = layout.identity;
  if (const int error = write_part_record(part->get(), which, record); error != 0) return error;
  if (const int error = give_access(root_fd, name.c_str(), stub, mode); error != 0) return error;
  return share_part_access(part->get(), which);
}

int remake_part(int root_fd, const Layout& layout, const StubSeen& seen, const struct stat& stub,
                mode_t mode, uint32_t device_index) {
  int error = empty_own_part(root_fd, layout, seen, device_index);
  if (error != EIO) return error;
  error = remove_part(root_fd, layout.file_id);
  if (error == 0) error = make_own_part(root_fd, layout, stub, mode, device_index);
  // the file still is a never-synced one
  if (error != 0) (void)remove_part(root_fd, layout.file_id);
  return error;
}

}  // namespace

int remake_parts(std::span<const int> roots, const Layout& layout, int stub_fd,
                 const PartsOwner& owner) {
  const Fd stub = reopen(stub_fd, O_RDWR);
  if (!stub) return errno;
  if (const Result<void> mine = lock_to_remake(stub.get()); !mine) return mine.error().code;
  Layout now;
  const Result<StubVerdict> verdict = read_stub(stub.get(), kStubSize, &now);
  if (!verdict) return verdict.error().code;
  if (*verdict != StubVerdict::kStub || now.file_id != layout.file_id) return EIO;
  const Result<void, PartError> owned = verify_named_parts(roots, now, owner);
  if (owned) return 0;  // another process has made them
  if (owned.error().ownership != Ownership::kNeverSynced) return owned.error().code;
  struct stat st;
  if (sys::fstat(stub.get(), &st) != 0) return errno;
  if (st.st_nlink == 0) return ENOENT;
  // Without its ACL, the mask in the group bits must not open the parts to the group.
  const bool is_listed = ::fgetxattr(stub.get(), "system.posix_acl_access", nullptr, 0) >= 0;
  const mode_t mode = st.st_mode & (is_listed ? 0707 : 0777);
  int error = 0;
  for (uint32_t d = 0; d < roots.size() && error == 0; ++d) {
    error = remake_part(roots[d], now, owner.stub, st, mode, d);
  }
  // A removal takes the name first: its parts may be gone already, and these would be left over.
  if (sys::fstat(stub.get(), &st) == 0 && st.st_nlink == 0) {
    for (const int root : roots) (void)remove_part(root, now.file_id);
    return ENOENT;
  }
  return error;
}

Fd empty_stand_in() {
  Fd empty(static_cast<int>(
      ::syscall(SYS_memfd_create, "graphlane-empty", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  constexpr int kNeverChanges = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (empty && sys::fcntl(empty.get(), F_ADD_SEALS, kNeverChanges) != 0) return {};
  return empty;
}

}  // namespace graphlane
