// Reading a striped file in the thread that asked: no thread of ours lives in a
// stranger's process.
//
// A read within one stripe unit is a pread on the part. A larger one takes an
// I/O queue from a small pool, sends one I/O to every device, and waits for all;
// when no queue is free (more threads than queues, a sandbox), it reads device
// after device.
//
// Threads, signal handlers: lock-free; signals are held while a queue is used.
// After fork() the child makes queues of its own (process.h).
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "shim/open_file.h"

namespace graphlane {

// Bytes read, fewer than `count` only at end of file; or -errno. Keeps errno.
ssize_t read_striped(const OpenFile& file, bool direct, uint64_t offset, void* buffer,
                     size_t count);

// What has read so far, for the report: a backend's name, or "preadv".
const char* backend_in_use();

}  // namespace graphlane
