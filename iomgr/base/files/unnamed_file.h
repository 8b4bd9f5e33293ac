// A temporary file without a name: it goes with its last descriptor, however the process ends.
#pragma once

#include <string>

#include "iomgr/base/fd.h"
#include "iomgr/base/result.h"

namespace graphlane {

// Makes one on the filesystem of `directory`, open to read and write, with these open(2) flags
// besides. Where the filesystem has no O_TMPFILE, it is made with a name that is removed at once,
// and without the flags.
Result<Fd> make_unnamed_file(const std::string& directory, int flags = 0);

}  // namespace graphlane
