// Two names of one directory change places, so that what was there can be removed after what
// replaces it has its name.
#pragma once

#include <string>

namespace graphlane {

// `from` and `to` are below `directory_fd`, on one filesystem. Where that does not exchange names
// (NFS, for one), `to` is missing for an instant; who is killed then leaves what it was as
// "TO.replaced-PID". 0 or an errno, and all is as it was.
int rename_exchange(int directory_fd, const std::string& from, const std::string& to);

}  // namespace graphlane
