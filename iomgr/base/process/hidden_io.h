// hide_unseen_io(): switches io_uring and libaio off, for programs that run by the preload library alone. No preload
// library sees them. io_uring_setup(2) and io_setup(2) fail with ENOSYS from now on, in this process and its children,
// and programs fall back to calls that the library sees.
//
// The library's own calls carry a cookie (setup_cookie.h). For all but root this sets no_new_privs:
// set-user-ID programs below do not change their user. No allocation: the preload library uses this
// too.
#pragma once

#include "iomgr/base/result.h"

namespace graphlane {

Result<void> hide_unseen_io();

}  // namespace graphlane
