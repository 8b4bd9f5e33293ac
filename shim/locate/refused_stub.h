// Without a mount: emptying a stub that is refused because its parts are another's.
//
// Threads: safe from any.
#pragma once

namespace graphlane {

// Empties the file, which is a plain one from then on, and touches no part. EIO: not a stub that provably owns no
// parts (iomgr/volume/parts/refused_stub.h). EBUSY: a process changes it or has its parts open. Else 0 or another errno.
// `flags`: O_NOFOLLOW.
int empty_refused_stub(int directory, const char* path, int flags);

}  // namespace graphlane
