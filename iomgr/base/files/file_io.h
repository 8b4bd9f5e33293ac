// Whole reads and writes: they retry EINTR and short transfers. No allocation, no exceptions.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "iomgr/base/result.h"

namespace graphlane {

// Reads until `length` bytes or end of file. Returns the bytes read.
Result<size_t> pread_full(int fd, void* buffer, size_t length, uint64_t offset);
Result<size_t> read_full(int fd, void* buffer, size_t length);

// Writes all of `length` bytes.
Result<void> pwrite_full(int fd, const void* buffer, size_t length, uint64_t offset);
Result<void> write_full(int fd, const void* buffer, size_t length);

}  // namespace graphlane
