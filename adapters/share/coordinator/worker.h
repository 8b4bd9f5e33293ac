// Worker: threads for work that would block the coordinator's loop. The loop runs a task's
// completion after its work. If the work threw (std::bad_alloc, say), the completion finds no
// result.
//
//   read()   waits for devices, on enough threads to keep all devices of a striped graph busy
//   post()   labels and writes, on one thread, because the cores are the jobs'
//
// Threads: read(), post(), finish() and idle() by the loop.
#pragma once

#include <array>
#include <functional>
#include <list>
#include <thread>

#include "iomgr/base/fd.h"
#include "iomgr/base/mutex.h"

namespace graphlane::share {

class Worker {
 public:
  using Call = std::function<void()>;

  Worker();
  ~Worker();  // drops tasks that have not begun

  void read(Call work, Call complete) { give(reads_, {std::move(work), std::move(complete)}); }
  void post(Call work, Call complete) { give(others_, {std::move(work), std::move(complete)}); }
  int event() const { return event_.get(); }  // readable: finish() has something to do
  void finish();
  bool idle() const { return pending_count_ == 0; }

 private:
  static constexpr size_t kReaders = 8;

  struct Task {
    Call work;
    Call complete;
  };
  struct Queue {
    CondVar changed;
    std::list<Task> tasks;
  };
  void give(Queue& queue, Task task);
  void run(Queue& queue);

  const Fd event_;
  size_t pending_count_ = 0;  // loop only: tasks not completed yet
  Mutex mu_;
  Queue reads_;  // both guarded by mu_
  Queue others_;
  std::list<Task> worked_ GUARDED_BY(mu_);  // awaiting completion
  bool stopping_ GUARDED_BY(mu_) = false;
  std::array<std::thread, kReaders + 1> threads_;  // last, because they use the members above
};

}  // namespace graphlane::share
