// A chown changes the owners of a stub and of its parts one after the other, on several
// filesystems. A kill or a power failure can leave them different, and then the stub is refused
// (volume/stub/ownership.h).
//
//   stub   owner A, or B        part 0   owner B        part 1   owner A
//
// The owners may be made equal again only where the parts prove that they belong to the stub. A
// part's record can be forged by every user that may write the part. So a part counts only if its
// mode lets its owner alone write it.
#pragma once

#include <span>

#include "iomgr/base/result.h"
#include "iomgr/volume/stub/ownership.h"

namespace graphlane {

// Gives the parts the stub's owner, if nothing but the owner of some is wrong, and each of these is
// proven to be the stub's. Whether it did. An errno of the change; EPERM: not proven, and nothing
// was changed. Call it under the volume's lock.
Result<bool> finish_chown(std::span<const int> roots, const Layout& layout, int stub_fd,
                          uint32_t volume_format);

}  // namespace graphlane
