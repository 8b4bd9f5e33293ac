// OpenFile: a striped file that this process has open, one for each inode, with
// its parts. Descriptors in the FdTable and reads under way hold references;
// the last one closes the parts.
//
// Threads, signal handlers: acquire() on a descriptor that is known takes no
// lock. Identifying an unknown one takes the SlowLock.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "iomgr/part_files.h"
#include "shim/fd_table.h"
#include "shim/locate.h"

namespace graphlane {

struct DeviceCounters;
struct FileCounters;

struct OpenFile {
  // 0: not in use, or being closed. Only the SlowLock's holder raises it from 0.
  std::atomic<uint32_t> references{0};
  std::atomic<bool> in_use{false};

  // Constant while references > 0.
  dev_t device_number = 0;
  ino_t inode = 0;
  Origin origin = Origin::kForeign;
  const Generation* counter = nullptr;  // over a mount
  uint64_t generation = 0;              // what is said here holds while *counter is this
  uint64_t size_bytes = 0;
  bool too_large_for_memory = false;  // past the page cache, whoever asks
  StripeMap map;
  PartFiles* parts = nullptr;  // in the slot's storage
  DeviceCounters* counters[kDeviceCountMax] = {};
  FileCounters* file_counters = nullptr;
  uint32_t slot = 0;
};

// A reference to the OpenFile behind a descriptor; empty for a foreign one.
class OpenFileRef {
 public:
  OpenFileRef() = default;
  OpenFileRef(OpenFile* file, bool direct) : file_(file), direct_(direct) {}
  OpenFileRef(OpenFileRef&& other) noexcept : file_(other.file_), direct_(other.direct_) {
    other.file_ = nullptr;
  }
  OpenFileRef& operator=(OpenFileRef&&) = delete;
  ~OpenFileRef();

  explicit operator bool() const { return file_ != nullptr; }
  const OpenFile* operator->() const { return file_; }
  const OpenFile& operator*() const { return *file_; }
  bool direct() const { return direct_ || file_->too_large_for_memory; }
  // The descriptor is the stub's: its size, content and offset end are not the
  // file's.
  bool on_stub() const { return file_->origin != Origin::kMount; }

 private:
  OpenFile* file_ = nullptr;
  bool direct_ = false;
};

// What the descriptor is, identifying it if need be. Keeps errno.
OpenFileRef acquire(int fd);

// As acquire(), but only for what matters without a mount.
OpenFileRef acquire_stub(int fd);

// The descriptor was opened, closed or replaced: forget what is known of it.
void forget(int fd);

}  // namespace graphlane
