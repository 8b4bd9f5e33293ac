// The st_blksize of striped files, on a mount and in preloaded programs.
//
// It is the unit of *small* reads: programs that read single rows (GraphBolt) read as much for each,
// and Python's files as much for each seek. Engines that sweep choose larger buffers themselves.
#pragma once

#include <sys/types.h>

namespace graphlane {

inline constexpr blksize_t kPreferredIoBytes = 4096;

// A mount shows it while a handle is open for writing only: Python buffers as much, stdio up to
// 8 KiB, and each write costs a round trip to the daemon. Without a mount there is no round trip.
inline constexpr blksize_t kPreferredWriteBytes = 128 << 10;

}  // namespace graphlane
