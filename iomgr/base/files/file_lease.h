// FileLease: what the kernel knows of other open descriptors of a file, in any process (fcntl(2),
// F_SETLEASE).
//
//   take()      no other descriptor is open. From now on others may read. The first open or
//               truncation for writing ends the lease; it waits some milliseconds for that
//   exclude()   no other descriptor is open, and an open waits until this object is destroyed
//
// A mapped file counts as open. For the file's owner, or with CAP_LEASE.
//
// Threads: is_broken() from any; the rest from one.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane {

class FileLease {
 public:
  // `fd` is open for reading only. EAGAIN: another descriptor is open. Other errors: the
  // filesystem, or this user, may take no lease.
  static Result<std::unique_ptr<FileLease>> take(int fd);
  ~FileLease();
  FileLease(const FileLease&) = delete;
  FileLease& operator=(const FileLease&) = delete;

  // Whether a writer has come. The lease has gone then.
  bool is_broken() const { return is_broken_.load(std::memory_order_acquire); }

  // EAGAIN: another descriptor is open, or one was since take() that could write.
  Result<void> exclude();
  // After exclude(): whether an open waits.
  bool is_awaited() const;

 private:
  explicit FileLease(int fd) : fd_(fd) {}
  void watch();
  void stop_watching();

  const int fd_;
  std::atomic<bool> is_broken_{false}, is_over_{false};
  std::thread watcher_;
};

}  // namespace graphlane
