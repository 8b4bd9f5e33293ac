// Queue: a FIFO of at most `capacity` items, between any threads.
#ifndef GRAPHLANE_GRIDGRAPH_QUEUE_HPP
#define GRAPHLANE_GRIDGRAPH_QUEUE_HPP

#include <stddef.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

template <class T>
class Queue {
 public:
  Queue(size_t capacity) : capacity_(capacity) {}

  void push(const T& item) {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [this] { return items_.size() < capacity_; });
    items_.push_back(item);
    changed_.notify_all();
  }
  T pop() {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [this] { return !items_.empty(); });
    T item = std::move(items_.front());
    items_.pop_front();
    changed_.notify_all();
    return item;
  }
  bool is_full() const { return size() == capacity_; }
  bool is_empty() const { return size() == 0; }

 private:
  size_t size() const {
    std::lock_guard<std::mutex> lock(mu_);
    return items_.size();
  }

  const size_t capacity_;
  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::deque<T> items_;
};

#endif
