// Changes of values that other threads change too.
#ifndef GRAPHLANE_GRIDGRAPH_ATOMIC_HPP
#define GRAPHLANE_GRIDGRAPH_ATOMIC_HPP

#include <string.h>

namespace graphlane_gridgraph {

// Whether the calling thread is the only one that processes. If so, the functions below need no locked
// instruction, which would take several times as long.
inline bool& is_one_writer() {
  static thread_local bool one = false;
  return one;
}

// Makes is_one_writer() true for its lifetime.
struct OneWriter {
  OneWriter() { is_one_writer() = true; }
  OneWriter(const OneWriter&) = delete;
  OneWriter& operator=(const OneWriter&) = delete;
  ~OneWriter() { is_one_writer() = false; }
};

}  // namespace graphlane_gridgraph

// Relaxed throughout, because a pass over edges or vertices ends by joining its threads.

// Sets *address to `desired` if it is `expected`; true if so.
template <class T>
inline bool cas(T* address, T expected, T desired) {
  if (graphlane_gridgraph::is_one_writer()) {
    if (memcmp(address, &expected, sizeof expected) != 0) return false;  // bitwise, as the instruction
    *address = desired;
    return true;
  }
  return __atomic_compare_exchange(address, &expected, &desired, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED);
}

// Sets *address to `value` if that is lower; true if so.
template <class T>
inline bool write_min(T* address, T value) {
  if (graphlane_gridgraph::is_one_writer()) {
    if (!(value < *address)) return false;
    *address = value;
    return true;
  }
  T seen;
  __atomic_load(address, &seen, __ATOMIC_RELAXED);
  while (value < seen) {
    if (__atomic_compare_exchange(address, &seen, &value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      return true;
    }
  }
  return false;
}

template <class T>
inline void write_add(T* address, T value) {
  if (graphlane_gridgraph::is_one_writer()) {
    *address = static_cast<T>(*address + value);
    return;
  }
  T seen;
  __atomic_load(address, &seen, __ATOMIC_RELAXED);
  T sum = static_cast<T>(seen + value);
  while (!__atomic_compare_exchange(address, &seen, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    sum = static_cast<T>(seen + value);
  }
}

#endif
