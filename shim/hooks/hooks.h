// The replacements of libc's functions, declared from calls.def.
//
// The function that other programs see as `pread` is called hook_pread here:
// the assembler name makes the two meet without a quarrel with libc's headers.
//
// Promises of every hook: what it declines goes to the original with its
// arguments untouched; on success errno is as the caller left it; no lock is
// taken on a descriptor that is not ours; no exception, no C++ runtime.
#pragma once

#include "shim/hooks/call_types.h"

#define CALL(group, result, name, parameters, arguments) \
  extern "C" __attribute__((visibility("default"))) result hook_##name parameters __asm__(#name);
#include "shim/hooks/calls.def"
