// A daemon's messages, one line each: to stderr until the daemon leaves its terminal, then to
// syslog.
//
// Threads: log_line() from any; the other functions before threads are started.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace graphlane {

inline constexpr std::string_view kLogPrefix = "graphlane: ";  // on stderr

void log_to_syslog();

// Replaces stderr as the target, where libfuse itself writes to stderr (perror).
void log_to(int fd);

void log_line(const std::string& text);

template <class... Args>
void log_line(fmt::format_string<Args...> format, Args&&... args) {
  log_line(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace graphlane
