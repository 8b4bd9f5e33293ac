#include "adapters/share/coordinator/worker.h"

#include <sys/eventfd.h>

#include <exception>
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
  (void)!::read(event_.get(), &count, sizeof count);  // EAGAIN: an earlier call has reset it
  std::list<Task> worked;
  {
    MutexLock lock(mu_);
    worked.swap(worked_);
  }
  for (const Task& task : worked) {
    --pending_count_;
    task.complete();
  }
}

void Worker::run(Queue& queue) {
  for (;;) {
    std::list<Task> task;  // a node moves between lists without an allocation
    {
      MutexLock lock(mu_);
      while (queue.tasks.empty() && !stopping_) queue.changed.wait(mu_);
      if (stopping_) return;
      task.splice(task.begin(), queue.tasks, queue.tasks.begin());
    }
    try {
      task.front().work();
    } catch (const std::exception&) {
      // The work has left no result, which its completion handles.
    }
    task.front().work = {};  // frees its captures here rather than in the loop
    {
      MutexLock lock(mu_);
      worked_.splice(worked_.end(), task);
    }
    const uint64_t one = 1;
    (void)!::write(event_.get(), &one, sizeof one);
  }
}

}  // namespace graphlane::share
