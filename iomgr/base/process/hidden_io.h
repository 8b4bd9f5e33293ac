// hide_unseen_io(): disables io_uring and libaio for programs with only the preload library, which
// cannot see such I/O. io_uring_setup(2) and io_setup(2) fail with ENOSYS from now on, in this
// process and its children. Programs then fall back to calls that the library sees.
//
// The library's own calls carry a cookie (setup_cookie.h). Except for root this sets no_new_privs:
// set-user-ID programs below do not change their user. No allocation: the preload library uses
// this too.
#pragma once

#include "iomgr/base/result.h"

namespace graphlane {

Result<void> hide_unseen_io();

}  // namespace graphlane
