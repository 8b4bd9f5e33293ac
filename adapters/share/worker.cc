#include "adapters/share/worker.h"

#include <sys/eventfd.h>

#include <utility>

namespace graphlane::share {

Worker::Worker() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (std::thread& thread : threads_) {
    Queue& queue = &thread == &threads_.back() ? others_ : reads_;
    thread = std::thread([this, &queue] { run(queue); });
  }
}

Worker::~Worker() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  reads_.changed.notify_all();
  others_.changed.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Worker::give(Queue& queue, Task task) {
  ++pending_count_;
  {
    MutexLock lock(mu_);
    queue.tasks.push_back(std::move(task));
  }
  queue.changed.notify_one();
}

void Worker::finish() {
  uint64_t count;
  (void)!::read(event_.get(), &count, sizeof count);  // EAGAIN: somebody else's wake-up
  std::deque<Completion> completions;
  {
    MutexLock lock(mu_);
    completions.swap(completions_);
  }
  for (const Completion& complete : completions) {
    --pending_count_;
    complete();
  }
}

void Worker::run(Queue& queue) {
  for (;;) {
    Task task;
    {
      MutexLock lock(mu_);
      while (queue.tasks.empty() && !stopping_) queue.changed.wait(mu_);
      if (stopping_) return;
      task = std::move(queue.tasks.front());
      queue.tasks.pop_front();
    }
    Completion completion = task();
    {
      MutexLock lock(mu_);
      completions_.push_back(std::move(completion));
    }
    const uint64_t one = 1;
    (void)!::write(event_.get(), &one, sizeof one);
  }
}

}  // namespace graphlane::share
