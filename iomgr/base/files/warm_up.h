// Warm-up of files of the same names on several devices: brings their directories and inodes into
// memory, from all devices at the same time.
//
//   open each, cold     device 0 ▓▓▓▓              a seek or two each, one device after the other
//                       device 1     ▓▓▓▓
//
//   warm_up() first     device 0 ▓▓▓▓              then each open is served from memory
//                       device 1 ▓▓▓▓
//
// By io_uring (IORING_OP_STATX, Linux 5.6), without threads of this process. Where there is none it
// does nothing: then the opens take their time.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>
#include <span>

namespace graphlane {

// Whether an open of the file would wait for its device. False if the kernel cannot tell (before
// Linux 5.12). The answer for a missing file is cold, too, until one has looked for it.
bool is_cold(int directory_fd, const char* path);

// Returns when all that exist are in memory. Errors are left to the opens, and errno as it was. `fd_floor`: as of
// set_up_ring().
void warm_up(std::span<const int> directory_fds, std::span<const char* const> paths, int fd_floor);

}  // namespace graphlane
