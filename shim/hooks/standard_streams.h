// Without a mount: stdin, stdout and stderr on a striped file. libc's own streams would meet the
// stub. So the program gets the library's streams while the descriptor is a stub's. Shells and
// sort(1) move descriptors there at any time.
#pragma once

#include <cstdio>

namespace graphlane::shim {

// A descriptor has become another file's. Does nothing unless it is 0, 1 or 2. Keeps errno.
void follow_standard_stream(int fd);

// A stream is about to be closed. If it replaces a standard one, that ends.
void end_standard_stream(const FILE* stream);

// The stream that replaces libc's standard one, if there is one; otherwise `stream` itself.
// libstdc++ keeps libc's streams for std::cin and std::cout, because it starts before the library.
FILE* standing_in_for(FILE* stream);

// A stream over a stub's descriptor, which it takes over; null: out of memory.
FILE* stub_stream(int fd, const char* mode);

}  // namespace graphlane::shim
