#include "fuse/log.h"

#include <syslog.h>

#include <cstdarg>
#include <cstdio>

#include "fuse/fuse_api.h"
#include "iomgr/base/file_io.h"

namespace graphlane {
namespace {

bool to_syslog = false;
int log_fd = STDERR_FILENO;

void log_fuse(fuse_log_level level, const char* format, va_list arguments) {
  if (level > FUSE_LOG_WARNING) return;
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  std::string line = text;
  while (!line.empty() && line.back() == '\n') line.pop_back();
  log_line(line);
}

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
  const std::string line = fmt::format("{}{}\n", kLogPrefix, text);
  (void)write_full(log_fd, line.data(), line.size());  // nobody to tell
}

void log_fuse_messages() { ::fuse_set_log_func(log_fuse); }

}  // namespace graphlane
