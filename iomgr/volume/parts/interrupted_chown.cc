#include "iomgr/volume/parts/interrupted_chown.h"

#include <sys/stat.h>

#include <array>

#include "iomgr/base/fd.h"
#include "iomgr/base/sys.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/stub/part_record_io.h"

namespace graphlane {
namespace {

// Whether only its owner, and root, can have written its record. With an ACL the group bits are
// its mask.
bool is_its_owners_word(const struct stat& part) {
  return S_ISREG(part.st_mode) && part.st_nlink == 1 && (part.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

Result<bool> finish_chown(std::span<const int> roots, const Layout& layout, int stub_fd,
                          uint32_t volume_format) {
  const Result<StubSeen> stub = identify_stub(stub_fd);
  struct stat wanted;
  if (!stub) return stub.error();
  if (sys::fstat(stub_fd, &wanted) != 0) return last_errno();
  if (layout.format == kStubFormatUnbound ||
      verify_stub(layout, *stub, volume_format) != Ownership::kOwned) {
    return Errno{EPERM};
  }
  std::array<Fd, kDeviceCountMax> parts;
  std::array<bool, kDeviceCountMax> differs{};
  bool any = false;
  for (uint32_t d = 0; d < roots.size(); ++d) {
    struct stat part;
    parts[d] = find_part(roots[d], layout.file_id);
    if (!parts[d]) return errno == ENOENT ? Errno{EPERM} : last_errno();
    if (sys::fstat(parts[d].get(), &part) != 0) return last_errno();
    Result<PartSeen> seen = look_at_part(parts[d].get(), part_of(roots[d], layout));
    if (!seen) return seen.error();
    differs[d] = seen->uid != stub->uid;
    if (differs[d] && !is_its_owners_word(part)) return Errno{EPERM};
    seen->uid = stub->uid;
    if (verify_part(layout, *stub, *seen, d) != Ownership::kOwned) return Errno{EPERM};
    any = any || differs[d];
  }
  for (uint32_t d = 0; d < roots.size(); ++d) {
    if (!differs[d]) continue;
    if (::syscall(SYS_fchownat, parts[d].get(), "", wanted.st_uid, wanted.st_gid, AT_EMPTY_PATH) !=
        0) {
      return last_errno();
    }
    const int error = share_part_access(parts[d].get(), part_of(roots[d], layout));
    if (error != 0) return Errno{error};
  }
  return any;
}

}  // namespace graphlane
