// A daemon's messages: one line each, on stderr while somebody watches it,
// to syslog once the daemon has left its terminal.
//
// Threads: log_line() from any; the rest before it starts threads.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace graphlane {

inline constexpr std::string_view kLogPrefix = "graphlane: ";  // on stderr

void log_to_syslog();

// To another descriptor than stderr, where libfuse writes for itself (perror).
void log_to(int fd);

void log_line(const std::string& text);

template <class... Args>
void log_line(fmt::format_string<Args...> format, Args&&... args) {
  log_line(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace graphlane
