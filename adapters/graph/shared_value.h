// Values of vertices that several workers may read and change at once.
//
// Relaxed: they order nothing else; the end of an iteration orders all.
#pragma once

#include <atomic>
#include <type_traits>
#include <vector>

#include "adapters/graph/worker_pool.h"

namespace graphlane {

template <class T>
T load_shared(const T& value) {
  return std::atomic_ref<T>(const_cast<T&>(value)).load(std::memory_order_relaxed);
}
template <class T>
void store_shared(T& value, T to) {
  std::atomic_ref<T>(value).store(to, std::memory_order_relaxed);
}
// Returns whether `to` was less.
template <class T>
bool lower_shared(T& value, T to) {
  std::atomic_ref<T> shared(value);
  T now = shared.load(std::memory_order_relaxed);
  while (to < now) {
    if (shared.compare_exchange_weak(now, to, std::memory_order_relaxed)) return true;
  }
  return false;
}
// As lower_shared(); returns the value before, which is larger than `to` if it was lowered.
template <class T>
T exchange_lower_shared(T& value, T to) {
  std::atomic_ref<T> shared(value);
  T now = shared.load(std::memory_order_relaxed);
  while (to < now) {
    if (shared.compare_exchange_weak(now, to, std::memory_order_relaxed)) break;
  }
  return now;
}
template <class T>
T add_shared(T& value, T more) {
  if constexpr (std::is_integral_v<T>) {
    return std::atomic_ref<T>(value).fetch_add(more, std::memory_order_relaxed);
  } else {
    std::atomic_ref<T> shared(value);
    T now = shared.load(std::memory_order_relaxed);
    while (!shared.compare_exchange_weak(now, now + more, std::memory_order_relaxed)) {
    }
    return now;
  }
}

// One of T for each worker, in cache lines of their own.
template <class T>
class PerWorker {
 public:
  explicit PerWorker(const WorkerPool& pool) : all_(pool.size()) {}
  T& operator[](unsigned worker) { return all_[worker].value; }
  template <class Fold>
  void fold(const Fold& each) {
    for (Slot& slot : all_) each(slot.value);
  }

 private:
  struct alignas(64) Slot {
    T value{};
  };
  std::vector<Slot> all_;
};

}  // namespace graphlane
