// Names of what is being built, locked (flock) by who builds it. What a killed process has left is
// known by the lock, which died with it, and not by its number, which may be in use again.
#pragma once

#include <filesystem>
#include <string>

#include "iomgr/base/fd.h"

namespace graphlane {

// Opens `path` and takes its lock; an empty Fd and errno if it cannot be opened, if someone else
// has it, or if it was replaced or removed before the lock was ours (EWOULDBLOCK).
Fd lock_name(const std::string& path, int flags);

// Removes what begins with `prefix` in `directory` and is ours, with all below, unless somebody has it
// locked.
void remove_unlocked(const std::filesystem::path& directory, const std::string& prefix);

}  // namespace graphlane
