// Without a mount: empties a stub that is refused because its parts belong to another one.
//
// Threads: safe from any.
#pragma once

namespace graphlane::shim {

// Empties the file, which becomes a plain one, and touches no part. EIO: not a stub that provably
// owns no parts (iomgr/volume/parts/refused_stub.h). EBUSY: a process changes it, or has its parts
// open. Otherwise 0 or another errno. `flags`: O_NOFOLLOW.
int empty_refused_stub(int directory, const char* path, int flags);

}  // namespace graphlane::shim
