// Large writes over a mount, past the kernel: the program writes the parts itself, after it has
// asked the mount's server (iomgr/server/server_protocol.h, "Writing"). FUSE serves all other
// writes: small ones, those not of whole pages, appends, synchronous ones, and all while another
// process has the file open.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace graphlane::shim {

// The two questions cost some 50 microseconds, which FUSE takes for 256 KiB.
inline constexpr size_t kPastKernelMin = 1 << 20;

// Whether it was written in this way. If so, *result is the bytes. `offset`: kAtFileOffset or
// pwrite(2)'s. Keeps errno.
bool write_past_kernel(int fd, const void* buffer, size_t count, off_t offset, ssize_t* result);

}  // namespace graphlane::shim
