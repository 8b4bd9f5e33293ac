// The originals of the functions in calls.def: real::pread() and so on.
//
// Each is looked up (dlsym RTLD_NEXT) when it is first called, so that a hook
// works before our constructor has run, and what a libc does not have costs
// nothing unless it is called (then it fails with ENOSYS).
#pragma once

#include <atomic>
#include <cerrno>
#include <type_traits>

#include "shim/hooks/call_types.h"

namespace graphlane::real {

// The next definition of `name` after ours; null: there is none.
void* resolve(const char* name);

// What a failed call returns: -1, or null, or nothing.
template <class T>
T absent() {
  errno = ENOSYS;
  if constexpr (std::is_same_v<T, void*>) {
    return reinterpret_cast<T>(-1);  // MAP_FAILED
  } else if constexpr (std::is_pointer_v<T>) {
    return nullptr;
  } else if constexpr (!std::is_void_v<T>) {
    return -1;
  }
}

// Relaxed everywhere: every thread that races here stores the same address. What is done once
// is a function of its own, so that a hook that has only to call the original jumps there.
#define CALL(group, result, name, parameters, arguments)                            \
  inline std::atomic<void*> address_of_##name{nullptr};                             \
  [[gnu::noinline, gnu::cold]] inline result first_##name parameters {              \
    void* const original = resolve(#name);                                          \
    if (original == nullptr) return absent<result>();                               \
    address_of_##name.store(original, std::memory_order_relaxed);                   \
    return reinterpret_cast<result(*) parameters>(original) arguments;              \
  }                                                                                 \
  inline result name parameters {                                                   \
    void* const original = address_of_##name.load(std::memory_order_relaxed);       \
    if (__builtin_expect(original == nullptr, 0)) return first_##name arguments;    \
    return reinterpret_cast<result(*) parameters>(original) arguments;              \
  }
#include "shim/hooks/calls.def"

}  // namespace graphlane::real
