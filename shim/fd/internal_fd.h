// Descriptors of the library's own, out of the program's way: with high numbers, and marked in the
// FdTable, so that the program cannot close them.
#pragma once

#include "iomgr/base/fd.h"

namespace graphlane::shim {

// Moves the descriptor to a high number.
Fd lifted(Fd fd);

// As lifted(), and the program cannot close it: its number, or -1 if `fd` is empty. drop_internal()
// closes it.
int keep_internal(Fd fd);
void drop_internal(int fd);

}  // namespace graphlane::shim
