// The replacements of libc's functions, declared from calls.def.
//
// The function that other programs see as `pread` is called hook_pread here. Its assembler name
// makes the two the same without a conflict with libc's headers.
//
// Every hook guarantees:
//   - a declined call goes to the original with unchanged arguments
//   - on success errno is as the caller left it
//   - no lock on a foreign descriptor
//   - no exceptions, and no C++ runtime
#pragma once

#include "shim/hooks/call_types.h"

#define CALL(group, result, name, parameters, arguments) \
  extern "C" __attribute__((visibility("default"))) result hook_##name parameters __asm__(#name);
#include "shim/hooks/calls.def"
