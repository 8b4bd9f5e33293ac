// Writes over a mount, past the kernel: the program writes the parts itself, with leave of the
// mount's server (iomgr/server/server_protocol.h).
//
//   large     of whole pages: the server is asked before each, and told after it ("Writing")
//   at the end of the file, of any size, by a descriptor that is open for writing only: the server
//             is asked once in a while ("Appending"), from the 32nd such write on
//
// What is neither, or synchronous, goes through FUSE, and so does everything while another handle
// of the file is open.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace graphlane::shim {

// The two questions cost some 50 microseconds, which FUSE takes for 256 KiB.
inline constexpr size_t kPastKernelMin = 1 << 20;

// Whether it was written. If so, *result is the bytes or -errno. `offset`: kAtFileOffset or
// pwrite(2)'s. Keeps errno.
bool write_past_kernel(int fd, const void* buffer, size_t count, off_t offset, ssize_t* result);

// As write_past_kernel(), at the end of the file.
bool append_past_kernel(int fd, const void* buffer, size_t count, off_t offset, ssize_t* result);

}  // namespace graphlane::shim
