// Worker: threads that do what would hold up the coordinator's loop: reading, labelling,
// writing. A task runs there and returns what is to be done about it in the loop. They are two:
// while one copies or labels what has come, the devices work for the other.
//
// Threads: post(), finish() and idle() by the loop.
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

  void post(Task task);
  int event() const { return event_.get(); }  // readable: finish() has something to do
  void finish();
  bool idle() const { return pending_count_ == 0; }

 private:
  void run();

  const Fd event_;
  size_t pending_count_ = 0;  // the loop's: posted, and not finished
  Mutex mu_;
  CondVar changed_;
  std::deque<Task> tasks_ GUARDED_BY(mu_);
  std::deque<Completion> completions_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
  std::array<std::thread, 2> threads_;  // last: they use all of the above
};

}  // namespace graphlane::share
