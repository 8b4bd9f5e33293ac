// Generations: the counters of iomgr/server/server_protocol.h, in memory that clients map
// read-only.
//
// Threads: everything is safe from any thread.
#pragma once

#include <pthread.h>

#include "iomgr/base/fd.h"
#include "iomgr/base/result.h"
#include "iomgr/server/server_protocol.h"

namespace graphlane::fuse {

class Generations {
 public:
  Generations();  // throws bad_alloc or system_error
  ~Generations();
  Generations(const Generations&) = delete;
  Generations& operator=(const Generations&) = delete;

  void advance(const Uuid& file_id) {
    // Release: a thread that sees the new value sees every earlier change of the file.
    at(file_id).fetch_add(1, std::memory_order_acq_rel);
  }
  uint64_t of(const Uuid& file_id) const { return at(file_id).load(std::memory_order_acquire); }
  void count_served(const Uuid& file_id) {
    // Relaxed: a client reads it only after the kernel has had its answer.
    served_counter(&at(file_id))->fetch_add(1, std::memory_order_relaxed);
  }

  // Clients see that the server is alive, until release() or until the process ends. Both calls
  // belong to one thread.
  void hold();
  void release();

  // A memfd that no process can write or resize any more.
  int fd() const { return fd_.get(); }

 private:
  Generation& at(const Uuid& file_id) const { return counters_[generation_index(file_id)]; }

  Fd fd_;
  Generation* counters_ = nullptr;
  pthread_mutex_t* life_ = nullptr;
};

}  // namespace graphlane::fuse
