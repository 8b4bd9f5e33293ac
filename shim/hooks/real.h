// The originals of the functions in calls.def: real::pread() and so on.
//
// Each is looked up (dlsym RTLD_NEXT) at its first call. So a hook works before the library's
// constructor has run. A function that a libc lacks costs nothing unless it is called, and then
// fails with ENOSYS.
#pragma once

#include <atomic>
#include <cerrno>
#include <type_traits>

#include "shim/hooks/call_types.h"

namespace graphlane::shim::real {

// The next definition of `name` after the library's; null: there is none.
void* resolve(const char* name);

// The result of a failed call: -1, or null, or nothing.
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

// Relaxed everywhere: every thread that races here stores the same address. The look-up is a
// separate function, so that a hook that only calls the original can jump there.
#define CALL(group, result, name, parameters, arguments)                         \
  inline std::atomic<void*> address_of_##name{nullptr};                          \
  [[gnu::noinline, gnu::cold]] inline result first_##name parameters {           \
    void* const original = resolve(#name);                                       \
    if (original == nullptr) return absent<result>();                            \
    address_of_##name.store(original, std::memory_order_relaxed);                \
    return reinterpret_cast<result(*) parameters>(original) arguments;           \
  }                                                                              \
  inline result name parameters {                                                \
    void* const original = address_of_##name.load(std::memory_order_relaxed);    \
    if (__builtin_expect(original == nullptr, 0)) return first_##name arguments; \
    return reinterpret_cast<result(*) parameters>(original) arguments;           \
  }
#include "shim/hooks/calls.def"

}  // namespace graphlane::shim::real
