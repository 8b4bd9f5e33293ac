// Finds blocks of a part that its filesystem has allocated, but that were never written.
//
// ext4 and XFS may write a file's new size before the data of an append. After a power failure the
// file may have the new size, and an allocated but unwritten extent behind its old end, which reads
// as zeros. The program has not written them.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstdint>

namespace graphlane {

// The offset of the first such byte in [begin, end) of the part; otherwise `end`, also if the
// filesystem does not tell. `part_fd` is open to read or write, or O_PATH. Writes dirty pages back
// first: they count as written.
uint64_t first_unwritten(int part_fd, uint64_t begin, uint64_t end);

}  // namespace graphlane
