// Locks (flock) the names of files under construction. The lock dies with its process. So it tells
// leftovers of killed processes from work in progress; a process number could be in use again.
#pragma once

#include <filesystem>
#include <string>

#include "iomgr/base/fd.h"

namespace graphlane {

// Opens `path` and locks it. Returns an empty Fd and errno if it cannot be opened. EWOULDBLOCK: it
// is locked, or it was replaced or removed before the lock was taken.
Fd lock_name(const std::string& path, int flags);

// Removes the unlocked names that begin with `prefix` in `directory` and belong to this user, with
// all below.
void remove_unlocked(const std::filesystem::path& directory, const std::string& prefix);

}  // namespace graphlane
