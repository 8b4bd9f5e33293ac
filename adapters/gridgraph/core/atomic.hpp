// Changing a value that other threads change too.
#ifndef GRAPHLANE_GRIDGRAPH_ATOMIC_HPP
#define GRAPHLANE_GRIDGRAPH_ATOMIC_HPP

// Relaxed throughout: a pass over edges or vertices ends by joining its threads.

// True if *address was `expected`, and is `desired` now.
template <class T>
inline bool cas(T* address, T expected, T desired) {
  return __atomic_compare_exchange(address, &expected, &desired, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED);
}

// True if `value` was lower.
template <class T>
inline bool write_min(T* address, T value) {
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
  T seen;
  __atomic_load(address, &seen, __ATOMIC_RELAXED);
  T sum = static_cast<T>(seen + value);
  while (!__atomic_compare_exchange(address, &seen, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    sum = static_cast<T>(seen + value);
  }
}

#endif
