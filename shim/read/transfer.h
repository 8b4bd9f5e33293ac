// Reads and writes of striped files by their parts (iomgr/io/inline_engine.h): in the calling thread,
// because the library has no thread of its own in a foreign process.
//
// Threads, signal handlers: lock-free unless it waits for a disk; signals are blocked while a queue is
// used, and at gates.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "shim/fd/open_file.h"

namespace graphlane::shim {

// Bytes read, fewer than `count` only at end of file; or -errno. Keeps errno.
ssize_t read_striped(const OpenFileRef& file, uint64_t offset, void* buffer, size_t count);

// Tells whether the range, within the file, will be needed (POSIX_FADV_WILLNEED, …_DONTNEED):
// advises the parts in the page cache, or prefetches past it. Keeps errno.
void advise_striped(const OpenFileRef& file, ByteRange range, int advice);

// Writes within the file's size on all devices at once. 0 or an errno; after an error it is unknown
// which bytes were written. Keeps errno.
int overwrite_striped(const OpenFileRef& file, uint64_t offset, const void* buffer, size_t count);

// Writes from front to back, so that the parts imply a right size at any time. Returns the bytes
// written, fewer than `count` only if no more could be; or -errno. Keeps errno.
ssize_t write_in_order(const OpenFileRef& file, uint64_t offset, const void* buffer, size_t count);

}  // namespace graphlane::shim
