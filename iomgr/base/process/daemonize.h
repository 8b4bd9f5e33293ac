// A daemon whose parent learns whether it came up.
//
//   parent ──fork── child, session of its own
//     │ waits ◄──────── on_ready()     stdio to /dev/null, messages to syslog
//     ▼ success
#pragma once

#include <functional>
#include <optional>

#include "iomgr/base/error.h"

namespace graphlane {

using Server = std::function<Outcome<void>(std::function<void()> on_ready)>;

// Runs `server` in a child process; returns in the parent once the server calls
// on_ready(), or with the error that it returned before that. The child exits.
Outcome<void> daemonize(const Server& server);

// How a child tells its parent: one Error over a pipe. Code 0: all is well.
void send_report(int fd, const Error& error);
// None: the other end was closed without a word.
std::optional<Error> receive_report(int fd);

// As many open files as this process may have.
void raise_descriptor_limit();

}  // namespace graphlane
