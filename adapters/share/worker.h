// Worker: threads that do what would hold up the coordinator's loop. A task runs there and
// returns what is to be done about it in the loop.
//
//   read()   waits for devices: by as many threads as keep all devices of a striped graph busy
//   post()   labels, writes: by one thread, as the cores are the jobs'
//
// Threads: read(), post(), finish() and idle() by the loop.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <thread>

#include "iomgr/base/fd.h"
#include "iomgr/base/mutex.h"

namespace graphlane::share {

class Worker {
 public:
  using Completion = std::function<void()>;
  using Task = std::function<Completion()>;

  Worker();
  ~Worker();  // drops what has not begun

  void read(Task task) { give(reads_, std::move(task)); }
  void post(Task task) { give(others_, std::move(task)); }
  int event() const { return event_.get(); }  // readable: finish() has something to do
  void finish();
  bool idle() const { return pending_count_ == 0; }

 private:
  static constexpr size_t kReaders = 8;

  struct Queue {
    CondVar changed;
    std::deque<Task> tasks;
  };
  void give(Queue& queue, Task task);
  void run(Queue& queue);

  const Fd event_;
  size_t pending_count_ = 0;  // the loop's: posted, and not finished
  Mutex mu_;
  Queue reads_;   // both guarded by mu_
  Queue others_;
  std::deque<Completion> completions_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
  std::array<std::thread, kReaders + 1> threads_;  // last: they use all of the above
};

}  // namespace graphlane::share
