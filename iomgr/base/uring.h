// Sets up an io_uring with this project's cookie (setup_cookie.h).
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <liburing.h>

#include <cstdint>

namespace graphlane {

// As io_uring_queue_init(): 0 or -errno. Its descriptor gets a number from `fd_floor` on, if there
// is one. It ends with io_uring_queue_exit().
int set_up_ring(uint32_t entries, io_uring* ring, unsigned flags, int fd_floor);

}  // namespace graphlane
