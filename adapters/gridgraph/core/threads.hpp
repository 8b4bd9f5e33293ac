// Threads: one per processor, for pieces of work in sequence. They sleep in between. A Graph has one set
// for its lifetime.
#ifndef GRAPHLANE_GRIDGRAPH_THREADS_HPP
#define GRAPHLANE_GRIDGRAPH_THREADS_HPP

#include <stddef.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/atomic.hpp"

namespace graphlane_gridgraph {

class Threads {
 public:
  Threads() : count_(std::max(1u, std::thread::hardware_concurrency())) {
    for (unsigned i = 1; i < count_; ++i) threads_.emplace_back([this, i] { serve(i); });
  }
  ~Threads() {
    {
      std::lock_guard<std::mutex> lock(mu_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  unsigned count() const { return count_; }

  // Calls piece(i) once for each i below `piece_count`, by `thread_count` threads including the caller. With
  // one, the caller wakes no thread and is the one writer (atomic.hpp).
  void run(size_t piece_count, unsigned thread_count, const std::function<void(size_t)>& piece) {
    if (thread_count <= 1 || threads_.empty()) {
      const OneWriter alone;
      for (size_t i = 0; i < piece_count; ++i) piece(i);
      return;
    }
    {
      std::lock_guard<std::mutex> lock(mu_);
      piece_ = &piece;
      piece_count_ = piece_count;
      next_.store(0, std::memory_order_relaxed);  // mu_ orders it
      wanted_ = std::min<size_t>(thread_count - 1, threads_.size());
      working_ = wanted_;
      ++round_;
    }
    changed_.notify_all();
    work(piece, piece_count);
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [this] { return working_ == 0; });
  }

 private:
  void work(const std::function<void(size_t)>& piece, size_t piece_count) {
    for (;;) {
      // Relaxed: the threads share only this number.
      const size_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= piece_count) return;
      piece(i);
    }
  }

  // Thread `number`: the caller is 0.
  void serve(size_t number) {
    unsigned long seen = 0;
    std::unique_lock<std::mutex> lock(mu_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
      if (number > wanted_) continue;
      const std::function<void(size_t)>& piece = *piece_;
      const size_t piece_count = piece_count_;
      lock.unlock();
      work(piece, piece_count);
      lock.lock();
      if (--working_ == 0) changed_.notify_all();
    }
  }

  const unsigned count_;
  std::mutex mu_;
  std::condition_variable changed_;
  bool stopping_ = false;
  unsigned long round_ = 0;
  size_t wanted_ = 0;   // threads of this round
  size_t working_ = 0;  // of them, those that have not finished
  const std::function<void(size_t)>* piece_ = nullptr;
  size_t piece_count_ = 0;
  std::atomic<size_t> next_{0};
  std::vector<std::thread> threads_;  // last, because they use the members above
};

}  // namespace graphlane_gridgraph

#endif
