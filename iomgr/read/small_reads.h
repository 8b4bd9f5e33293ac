// SmallReads: whether the kernel serves a small read of a file over a mount faster.
//
//   hit in the mount's page cache     0.45 µs, by the kernel alone
//   hit in the parts' page cache      1 µs, for the check of the number, and the read itself
//   only in the mount's server        40 µs
//
// The server counts the kernel's requests (iomgr/server/server_protocol.h). A read that leaves the
// count unchanged was a hit, and the next reads are left to the kernel, too. After a miss some
// reads go to the parts, twice as many after each miss in a row.
//
// Threads: begin() and end() one at a time. The rest is safe from any thread, also while the file is
// closed. If the descriptor is another file's by now, the kernel reads that one, and the only harm
// is a wrong guess.
// No allocation, no exceptions: the preload library uses this.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace graphlane {

class SmallReads {
 public:
  static constexpr uint32_t kRunMin = 16;   // reads that go to the parts after a miss
  static constexpr uint32_t kRunMax = 512;  // so that misses cost a twentieth at most

  // For a file that is read through the page cache. `served` counts the kernel's requests for it,
  // `by_kernel` the reads that are left to the kernel. Both outlive all files.
  void begin(const std::atomic<uint64_t>* served, std::atomic<uint64_t>* by_kernel) {
    // Relaxed: served_ publishes it.
    by_kernel_.store(by_kernel, std::memory_order_relaxed);
    run_.store(kRunMin, std::memory_order_relaxed);
    left_.store(kRunMin, std::memory_order_relaxed);
    served_.store(served, std::memory_order_release);
  }
  void end() { served_.store(nullptr, std::memory_order_relaxed); }

  // The kernel's result, if it was asked and has succeeded; nothing: read the parts. `read` is
  // libc's call.
  template <class Read>
  std::optional<ssize_t> by_kernel(Read read) {
    const std::atomic<uint64_t>* const served = served_.load(std::memory_order_acquire);
    if (served == nullptr || !may_ask_kernel()) return {};
    const int saved_errno = errno;
    // Relaxed: the system calls in between order them.
    const uint64_t before = served->load(std::memory_order_relaxed);
    const ssize_t n = read();
    learn(n >= 0 && served->load(std::memory_order_relaxed) == before);
    if (n < 0) return errno = saved_errno, std::nullopt;
    by_kernel_.load(std::memory_order_relaxed)->fetch_add(1, std::memory_order_relaxed);
    return n;
  }

 private:
  // Threads may lose a decrement to one another, and ask a little sooner or later.
  bool may_ask_kernel() {
    const uint32_t left = left_.load(std::memory_order_relaxed);
    if (left > 0) left_.store(left - 1, std::memory_order_relaxed);
    return left == 0;
  }
  void learn(bool was_hit) {
    const uint32_t run = run_.load(std::memory_order_relaxed);
    if (was_hit) {
      if (run != kRunMin) run_.store(kRunMin, std::memory_order_relaxed);
      return;
    }
    left_.store(run, std::memory_order_relaxed);
    run_.store(std::min(2 * run, kRunMax), std::memory_order_relaxed);
  }

  std::atomic<const std::atomic<uint64_t>*> served_{nullptr};  // null: never asks the kernel
  std::atomic<std::atomic<uint64_t>*> by_kernel_{nullptr};
  std::atomic<uint32_t> run_{kRunMin};
  std::atomic<uint32_t> left_{kRunMin};  // reads left of the run
};

}  // namespace graphlane
