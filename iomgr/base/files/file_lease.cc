#include "iomgr/base/files/file_lease.h"

#include <fcntl.h>
#include <signal.h>

#include <chrono>
#include <system_error>

namespace graphlane {
namespace {

constexpr auto kWatchInterval = std::chrono::milliseconds(2);

}  // namespace

Result<std::unique_ptr<FileLease>> FileLease::take(int fd) {
  // The kernel sends a signal when a lease is asked for. By default this one does nothing, and the
  // default one (SIGIO) would end the process.
  if (::fcntl(fd, F_SETSIG, SIGURG) != 0 || ::fcntl(fd, F_SETLEASE, F_WRLCK) != 0) {
    return last_errno();
  }
  std::unique_ptr<FileLease> lease(new FileLease(fd));
  if (::fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return last_errno();
  try {
    lease->watcher_ = std::thread([raw = lease.get()] { raw->watch(); });
  } catch (const std::system_error&) {
    return Errno{EAGAIN};
  }
  return lease;
}

FileLease::~FileLease() {
  stop_watching();
  if (!is_broken()) ::fcntl(fd_, F_SETLEASE, F_UNLCK);
}

void FileLease::watch() {
  while (!is_over_.load(std::memory_order_acquire)) {
    if (::fcntl(fd_, F_GETLEASE) != F_RDLCK) {
      is_broken_.store(true, std::memory_order_release);
      ::fcntl(fd_, F_SETLEASE, F_UNLCK);
      return;
    }
    std::this_thread::sleep_for(kWatchInterval);
  }
}

void FileLease::stop_watching() {
  is_over_.store(true, std::memory_order_release);
  if (watcher_.joinable()) watcher_.join();
}

Result<void> FileLease::exclude() {
  stop_watching();
  if (is_broken() || ::fcntl(fd_, F_GETLEASE) != F_RDLCK) return Errno{EAGAIN};
  return ::fcntl(fd_, F_SETLEASE, F_WRLCK) == 0 ? Result<void>() : last_errno();
}

bool FileLease::is_awaited() const { return ::fcntl(fd_, F_GETLEASE) != F_WRLCK; }

}  // namespace graphlane
