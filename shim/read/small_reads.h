// SmallReads: whether the kernel's own way to a small read of a file over a mount is shorter.
//
//   in the mount's page cache     0.45 µs, by the kernel alone
//   in that of the parts          1 µs: is the number still this file's, and the read itself
//   only the mount's server has it  40 µs
//
// The server counts what the kernel asks it for (iomgr/server/server_protocol.h). While a read left to
// the kernel leaves the count as it was, so are the next ones; after one that did not, some go to
// the parts, twice as many after each such one in a row.
//
// Threads: begin() and end() under the SlowLock; the rest from any, without a reference to the
// file: a number that means another file by now gets that one's bytes from the kernel, and what
// is learnt here is only whether to ask it.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "iomgr/server/server_protocol.h"
#include "shim/base/report.h"

namespace graphlane {

class SmallReads {
 public:
  static constexpr size_t kBytesMax = 64 << 10;
  static constexpr uint32_t kRunMin = 16;   // that go to the parts
  static constexpr uint32_t kRunMax = 512;  // so that asking in vain costs a twentieth

  // Of a file that is read through the page cache. `counter`: its generation.
  void begin(const Generation* counter, FileCounters* counters) {
    // Relaxed: served_ publishes them.
    counters_.store(counters, std::memory_order_relaxed);
    run_.store(kRunMin, std::memory_order_relaxed);
    left_.store(kRunMin, std::memory_order_relaxed);
    served_.store(served_counter(counter), std::memory_order_release);
  }
  void end() { served_.store(nullptr, std::memory_order_relaxed); }

  // The kernel's result, if it was asked and has one; nothing: read the parts. `read` is
  // libc's call.
  template <class Read>
  std::optional<ssize_t> by_kernel(Read read) {
    const Generation* const served = served_.load(std::memory_order_acquire);
    if (served == nullptr || !is_its_turn()) return {};
    const int saved_errno = errno;
    // Relaxed: the calls of the kernel in between put them in order.
    const uint64_t before = served->load(std::memory_order_relaxed);
    const ssize_t n = read();
    learn(n >= 0 && served->load(std::memory_order_relaxed) == before);
    if (n < 0) return errno = saved_errno, std::nullopt;
    counters_.load(std::memory_order_relaxed)->small_count.fetch_add(1, std::memory_order_relaxed);
    return n;
  }

 private:
  // Threads that lose a count to one another ask a little sooner or later.
  bool is_its_turn() {
    const uint32_t left = left_.load(std::memory_order_relaxed);
    if (left > 0) left_.store(left - 1, std::memory_order_relaxed);
    return left == 0;
  }
  void learn(bool had_it) {
    const uint32_t run = run_.load(std::memory_order_relaxed);
    if (had_it) {
      if (run != kRunMin) run_.store(kRunMin, std::memory_order_relaxed);
      return;
    }
    left_.store(run, std::memory_order_relaxed);
    run_.store(std::min(2 * run, kRunMax), std::memory_order_relaxed);
  }

  std::atomic<const Generation*> served_{nullptr};  // null: never the kernel's
  std::atomic<FileCounters*> counters_{nullptr};    // they outlive all files
  std::atomic<uint32_t> run_{kRunMin};
  std::atomic<uint32_t> left_{kRunMin};  // of the run
};

}  // namespace graphlane
