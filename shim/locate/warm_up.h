// Warm-up of a striped file's parts: brings their directories and inodes into memory from all devices
// at the same time.
//
//   open each, cold    device 0 ▓▓▓▓              a seek or two each, one device after the other
//                      device 1     ▓▓▓▓
//
//   warm_up() first    device 0 ▓▓▓▓              then each open is served from memory
//                      device 1 ▓▓▓▓
//
// By io_uring (IORING_OP_STATX, Linux 5.6). Its workers in the kernel count as threads of the process
// (io_uring(7)), and one of them stays. So a program of one thread is left as it is: it may rely on
// that, as unshare(CLONE_NEWUSER) does. Nor does it happen in a forked child (inline_queues.h), or
// where the user has chosen another backend.
#pragma once

#include <cstdint>
#include <span>

#include "iomgr/base/uuid.h"

namespace graphlane::shim {

// Looks up the parts, and their checksums if `with_sums`, unless the first part is in memory. Errors
// are left to the opens, and errno as it was.
void warm_up(std::span<const int> roots, const Uuid& file_id, bool with_sums);

}  // namespace graphlane::shim
