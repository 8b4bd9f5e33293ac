// Exchanges two names of one directory, so that the old file can be removed after the new one has
// its name.
#pragma once

#include <string>

namespace graphlane {

// `from` and `to` are below `directory_fd`, on one filesystem. On an error (an errno, else 0)
// nothing has changed. Some filesystems (NFS) cannot exchange names: there `to` is missing for an
// instant. A process killed then leaves the old file as "TO.replaced-PID".
int rename_exchange(int directory_fd, const std::string& from, const std::string& to);

}  // namespace graphlane
