// Without a mount: stdin, stdout and stderr on a striped file. libc's own streams
// would meet the stub; so while the descriptor is one, the program has streams of
// ours in their place. Shells and sort(1) move descriptors there in mid-life.
#pragma once

#include <cstdio>

namespace graphlane {

// A descriptor is another file's now; does nothing unless it is 0, 1 or 2. Keeps
// errno.
void follow_standard_stream(int fd);

// A stream is about to be closed: if it is one of ours in place of a standard one, it is so no more.
void end_standard_stream(const FILE* stream);

// The stream in place of libc's own standard one, if that one has been replaced; else `stream` itself.
// libstdc++ keeps libc's for std::cin and std::cout, from before the library looks at the descriptors.
FILE* standing_in_for(FILE* stream);

// A stream over a stub's descriptor, which it takes over; null: out of memory.
FILE* stub_stream(int fd, const char* mode);

}  // namespace graphlane
