// WorkerPool: threads that stay, for work that comes again and again (an engine's iterations).
//
// Threads: run() and for_blocks() from the thread that made the pool, one at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "iomgr/base/mutex.h"

namespace graphlane {

class WorkerPool {
 public:
  // At least one; the caller is worker 0. Fewer where the system refuses threads.
  explicit WorkerPool(unsigned worker_count);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  unsigned size() const { return static_cast<unsigned>(threads_.size()) + 1; }

  // Calls body(worker) once on every worker, 0 .. size() - 1, at the same time. Returns when all
  // have returned, and rethrows what one has thrown.
  void run(const std::function<void(unsigned worker)>& body);

  // Calls body(begin, end, worker) on blocks that together are [0, count), each on any worker. A
  // short count stays with the caller.
  template <class Body>
  void for_blocks(uint64_t count, uint64_t block, const Body& body) {
    if (count <= block || size() == 1) {
      for (uint64_t at = 0; at < count; at += block) body(at, std::min(count, at + block), 0u);
      return;
    }
    std::atomic<uint64_t> next{0};
    run([&](unsigned worker) {
      // Relaxed: run() orders the blocks' results.
      for (uint64_t at; (at = next.fetch_add(block, std::memory_order_relaxed)) < count;) {
        body(at, std::min(count, at + block), worker);
      }
    });
  }

  // The sum of body(begin, end) over blocks, added in their order: the same whatever the threads.
  template <class Body>
  double sum_blocks(uint64_t count, const Body& body) {
    constexpr uint64_t kBlock = 1 << 14;
    std::vector<double> sums((count + kBlock - 1) / kBlock);
    for_blocks(count, kBlock, [&](uint64_t begin, uint64_t end, unsigned) {
      sums[begin / kBlock] = body(begin, end);
    });
    double sum = 0;
    for (const double one : sums) sum += one;
    return sum;
  }

 private:
  void serve(unsigned worker);
  void call(const std::function<void(unsigned)>& body, unsigned worker);

  std::vector<std::thread> threads_;
  Mutex mu_;
  CondVar begun_;
  CondVar ended_;
  const std::function<void(unsigned)>* body_ GUARDED_BY(mu_) = nullptr;
  uint64_t round_ GUARDED_BY(mu_) = 0;
  unsigned working_ GUARDED_BY(mu_) = 0;
  bool stopping_ GUARDED_BY(mu_) = false;
  std::exception_ptr thrown_ GUARDED_BY(mu_);
};

}  // namespace graphlane
