// RequestBuffers: buffers for requests that cannot be spliced, aligned for direct I/O. Each is lent
// for one request, the most recently returned one first. So the data path neither allocates nor
// faults. After every kLoansCounted loans, buffers beyond the number that was lent at a time are
// freed. Huge pages are used only if a buffer fills one: for 128 buffers, half a page of waste each
// is more than a tight control group has.
//
// Threads: safe from any; a loan belongs to its thread.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "iomgr/base/mutex.h"

namespace graphlane::fuse {

class RequestBuffers {
 public:
  // Each buffer has at least `size` bytes.
  explicit RequestBuffers(size_t size) : size_(size) {}
  ~RequestBuffers() {
    for (void* memory : idle_) unmap(memory);
  }
  RequestBuffers(const RequestBuffers&) = delete;
  RequestBuffers& operator=(const RequestBuffers&) = delete;

  class Loan {
   public:
    // Throws std::bad_alloc without memory.
    explicit Loan(RequestBuffers& buffers) : buffers_(buffers), memory_(buffers.lend()) {}
    ~Loan() { buffers_.take_back(memory_); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    void* get() const { return memory_; }

   private:
    RequestBuffers& buffers_;
    void* const memory_;
  };

 private:
  static constexpr size_t kHugePage = 2u << 20;
  static constexpr uint32_t kLoansCounted = 256;

  void* lend() {
    {
      MutexLock lock(mu_);
      most_lent_ = std::max(most_lent_, ++lent_count_);
      if (!idle_.empty()) {
        void* const memory = idle_.back();
        idle_.pop_back();
        return memory;
      }
    }
    void* const memory =
        ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      MutexLock lock(mu_);
      --lent_count_;
      throw std::bad_alloc();
    }
    if (size_ >= kHugePage) (void)::madvise(memory, size_, MADV_HUGEPAGE);  // only a hint
    return memory;
  }

  void take_back(void* memory) {
    MutexLock lock(mu_);
    --lent_count_;
    idle_.push_back(memory);
    if (++loan_count_ < kLoansCounted) return;
    const size_t kept = most_lent_ - std::min<size_t>(most_lent_, lent_count_);
    while (idle_.size() > kept) {
      unmap(idle_.back());
      idle_.pop_back();
    }
    most_lent_ = lent_count_;
    loan_count_ = 0;
  }

  void unmap(void* memory) { ::munmap(memory, size_); }

  const size_t size_;
  Mutex mu_;
  std::vector<void*> idle_ GUARDED_BY(mu_);
  uint32_t lent_count_ GUARDED_BY(mu_) = 0;
  uint32_t most_lent_ GUARDED_BY(mu_) = 0;   // highest lent_count_ since loan_count_ was 0
  uint32_t loan_count_ GUARDED_BY(mu_) = 0;  // since idle buffers were last freed
};

}  // namespace graphlane::fuse
