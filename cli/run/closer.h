// The closer: a process beside `graphlane run --no-mount`. Once the command has ended, it closes the
// files that the command's programs have changed, so that they get their checksums. Nothing else
// closes a file that was written without a mount, before a mount or a check finds it.
//
//   run ── forks ──► closer, with a list in memory ◄── paths ── preloaded programs (shim/write)
//    │ becomes
//   the command ── ends, in whatever way ──► closes each file, and ends
#pragma once

namespace graphlane::cli {

// Starts one, and tells it to programs by the environment, unless there is one already. Best effort:
// without it the files stay as a killed writer leaves them.
void start_closer();

}  // namespace graphlane::cli
