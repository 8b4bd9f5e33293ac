#include "iomgr/base/process/log.h"

#include <syslog.h>
#include <unistd.h>

#include <atomic>

#include "iomgr/base/files/file_io.h"
#include "iomgr/base/printable.h"

namespace graphlane {
namespace {

std::atomic<bool> to_syslog = false;
std::atomic<int> log_fd = STDERR_FILENO;

}  // namespace

void log_to_syslog() {
  ::openlog("graphlane", LOG_PID, LOG_DAEMON);
  to_syslog = true;
}

void log_to(int fd) { log_fd = fd; }

void log_line(const std::string& text) {
  if (to_syslog) {
    ::syslog(LOG_WARNING, "%s", text.c_str());
    return;
  }
  const std::string line = fmt::format("{}{}\n", kLogPrefix, printable(text));
  (void)write_full(log_fd, line.data(), line.size());  // a failure could not be reported
}

}  // namespace graphlane
