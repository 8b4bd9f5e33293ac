// Identifies this process, although fork() copies and vfork() shares its memory.
//
//   fork    a child has copies of the tables, but not of rings and threads
//
//   vfork   a child has its own descriptors, but writes to the parent's memory until it executes
//           another program: what it closes is not closed here
//
// A page that the kernel wipes on fork tells both, however the child was made.
#pragma once

#include <cstdint>

namespace graphlane::shim {

// Differs between a process and its forked children. 0: unknown.
uint32_t process_epoch();

// Whether this runs in a child that shares the parent's memory, but not its descriptors. A system
// call. False until process_epoch() was called, which a process does at its start (fork_guard.cc).
// A child that called it first would be taken for the process.
bool in_vfork_child();

}  // namespace graphlane::shim
