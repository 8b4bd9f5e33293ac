// Mutex and lock with clang's thread-safety annotations. gcc ignores them, and `make lint` checks them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#if defined(__clang__)
#define GRAPHLANE_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define GRAPHLANE_THREAD_ANNOTATION(x)
#endif
#define GUARDED_BY(mutex) GRAPHLANE_THREAD_ANNOTATION(guarded_by(mutex))
#define REQUIRES(mutex) GRAPHLANE_THREAD_ANNOTATION(requires_capability(mutex))
// For a function that holds a lock under a condition. Its comment says which.
#define UNCHECKED_LOCKS GRAPHLANE_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace graphlane {

class GRAPHLANE_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() GRAPHLANE_THREAD_ANNOTATION(acquire_capability()) { mu_.lock(); }
  bool try_lock() GRAPHLANE_THREAD_ANNOTATION(try_acquire_capability(true)) {
    return mu_.try_lock();
  }
  // Looks once a millisecond.
  bool try_lock_for(std::chrono::milliseconds patience)
      GRAPHLANE_THREAD_ANNOTATION(try_acquire_capability(true)) {
    for (std::chrono::milliseconds waited{0}; !mu_.try_lock(); ++waited) {
      if (waited == patience) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  void unlock() GRAPHLANE_THREAD_ANNOTATION(release_capability()) { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class GRAPHLANE_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mu) GRAPHLANE_THREAD_ANNOTATION(acquire_capability(mu)) : mu_(mu) {
    mu_.lock();
  }
  // The caller has locked it, by try_lock() for example.
  MutexLock(Mutex& mu, std::adopt_lock_t) REQUIRES(mu) : mu_(mu) {}
  ~MutexLock() GRAPHLANE_THREAD_ANNOTATION(release_capability()) { mu_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

class CondVar {
 public:
  // The caller holds `mu`; it is released while waiting.
  void wait(Mutex& mu) REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  void wait_until(Mutex& mu, std::chrono::steady_clock::time_point deadline) REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait_until(lock, deadline);
    lock.release();
  }
  void notify_one() { cv_.notify_one(); }
  void notify_all() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace graphlane
