// Moving a striped file's bytes in the thread that asked: no thread of ours lives
// in a stranger's process.
//
// What lies within one stripe unit is one pread or pwrite on the part. A larger
// request takes an I/O queue from a small pool (queue_pool.h), sends one I/O to every
// device, and waits for all; when no queue is free (more threads than queues, a
// sandbox), it goes device after device. Past the page cache, a disk serves one
// request at a time (gates.h).
//
// Threads, signal handlers: lock-free where no disk is waited for; signals are held
// while a queue is used, and at gates.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "shim/fd/open_file.h"

namespace graphlane {

// Bytes read, fewer than `count` only at end of file; or -errno. Keeps errno.
ssize_t read_striped(const OpenFileRef& file, uint64_t offset, void* buffer, size_t count);

// The range, within the file, will be needed or not (POSIX_FADV_WILLNEED, …_DONTNEED): told to
// the parts in the page cache, or begun past it. Keeps errno.
void advise_striped(const OpenFileRef& file, ByteRange range, int advice);

// Writes within the file's size: all devices at once. 0 or an errno, and then
// nobody knows how far it came. Keeps errno.
int overwrite_striped(const OpenFileRef& file, uint64_t offset, const void* buffer, size_t count);

// Writes from the front to the back, so that the parts say a right size at any
// time. Bytes written, fewer than `count` only where no more would go; or -errno.
// Keeps errno.
ssize_t write_in_order(const OpenFileRef& file, uint64_t offset, const void* buffer, size_t count);

}  // namespace graphlane
