// Threads as the engines use them: made for one pass, and joined after it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

namespace engines {

// WorkQueue: a bounded FIFO. pop() waits, and returns false once the queue is closed and empty.
template <class Task>
class WorkQueue {
 public:
  explicit WorkQueue(size_t capacity) : capacity_(capacity) {}

  void push(const Task& task) {
    std::unique_lock lock(mu_);
    not_full_.wait(lock, [&] { return tasks_.size() < capacity_; });
    tasks_.push(task);
    lock.unlock();
    not_empty_.notify_one();
  }

  bool pop(Task& task) {
    std::unique_lock lock(mu_);
    not_empty_.wait(lock, [&] { return !tasks_.empty() || closed_; });
    if (tasks_.empty()) return false;
    task = tasks_.front();
    tasks_.pop();
    lock.unlock();
    not_full_.notify_one();
    return true;
  }

  void close() {
    std::unique_lock lock(mu_);
    closed_ = true;
    lock.unlock();
    not_empty_.notify_all();
  }

 private:
  const size_t capacity_;
  std::mutex mu_;
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::queue<Task> tasks_;
  bool closed_ = false;
};

// work(i) for every i below `count`, from at most `thread_count` threads.
template <class Work>
void parallel_for(size_t count, int thread_count, Work work) {
  std::atomic<size_t> next{0};
  const auto drain = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < thread_count && static_cast<size_t>(t) < count; ++t) {
    threads.emplace_back(drain);
  }
  drain();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace engines
