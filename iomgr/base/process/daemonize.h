// A daemon that tells its parent whether its start succeeded.
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

// Sends a child's result to its parent: one Error over a pipe. Code 0: success.
void send_report(int fd, const Error& error);
// None: the other end was closed without a report.
std::optional<Error> receive_report(int fd);

// Lets go of the first three descriptors, which are /dev/null's then.
void stdio_to_null();

// Raises the limit of open files as far as this process may.
void raise_descriptor_limit();

}  // namespace graphlane
