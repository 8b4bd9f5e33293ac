// Which process this is, though fork() and vfork() copy or share our memory.
//
//   fork    a child has copies of what we know; rings and threads are not in it
//   vfork   a child has descriptors of its own, but writes to *our* memory until
//           it is another program: what it closes is not closed here
//
// A page that the kernel wipes on fork tells both, however the child was made.
#pragma once

#include <cstdint>

namespace graphlane {

// Differs between a process and its children by fork. 0: cannot be told here.
uint32_t process_epoch();

// Whether this runs in a child that shares our memory, but not our descriptors.
// A system call. False until process_epoch() has been called, which a process does when it begins
// (fork_guard.cc): a child that did it first would be taken for the process.
bool in_vfork_child();

}  // namespace graphlane
