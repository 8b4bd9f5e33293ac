// Blocks of a part that its filesystem has allocated, and that were never written.
//
// ext4 and XFS write a file's new size before, or apart from, the data of an append. After a power failure the file
// may have the new size, and an extent behind its old end that is allocated and unwritten: it reads as zeros. The
// program has not written them.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>

namespace graphlane {

// The offset of the first such byte in [begin, end) of the part, else `end`. `part_fd` is open to read or write, or
// O_PATH. Writes back what is in the page cache first, which counts as written. `end`, too, where the filesystem
// cannot say.
uint64_t first_unwritten(int part_fd, uint64_t begin, uint64_t end);

}  // namespace graphlane
