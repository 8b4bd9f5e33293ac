#include "adapters/graph/worker_pool.h"

#include <system_error>
#include <utility>

namespace graphlane {

WorkerPool::WorkerPool(unsigned worker_count) {
  try {
    threads_.reserve(worker_count);
    for (unsigned worker = 1; worker < worker_count; ++worker) {
      threads_.emplace_back([this, worker] { serve(worker); });
    }
  } catch (const std::system_error&) {
  }
}

WorkerPool::~WorkerPool() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    begun_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::call(const std::function<void(unsigned)>& body, unsigned worker) {
  try {
    body(worker);
  } catch (...) {
    MutexLock lock(mu_);
    if (!thrown_) thrown_ = std::current_exception();
  }
}

void WorkerPool::run(const std::function<void(unsigned)>& body) {
  if (!threads_.empty()) {
    MutexLock lock(mu_);
    body_ = &body;
    ++round_;
    working_ = static_cast<unsigned>(threads_.size());
    begun_.notify_all();
  }
  call(body, 0);
  MutexLock lock(mu_);
  while (working_ > 0) ended_.wait(mu_);
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void WorkerPool::serve(unsigned worker) {
  for (uint64_t seen = 0;;) {
    const std::function<void(unsigned)>* body;
    {
      MutexLock lock(mu_);
      while (round_ == seen && !stopping_) begun_.wait(mu_);
      if (stopping_) return;
      seen = round_;
      body = body_;
    }
    call(*body, worker);
    MutexLock lock(mu_);
    if (--working_ == 0) ended_.notify_one();
  }
}

}  // namespace graphlane
