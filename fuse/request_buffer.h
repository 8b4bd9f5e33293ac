// RequestBuffer: one worker's memory for requests that cannot be spliced: aligned
// for direct I/O, kept for the worker's life. So the data path neither allocates nor
// faults pages in. On huge pages only where it fills one: half a page for nothing, for each
// of 128 workers, is more than a tight control group has.
//
// Threads: one a thread.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace graphlane {

class RequestBuffer {
 public:
  // This thread's buffer of at least `size` bytes; the size never changes.
  static void* of_this_thread(size_t size) {
    thread_local RequestBuffer buffer(size);
    return buffer.memory_;
  }

 private:
  static constexpr size_t kHugePage = 2u << 20;

  explicit RequestBuffer(size_t size) : size_(size) {
    memory_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    if (size_ >= kHugePage) (void)::madvise(memory_, size_, MADV_HUGEPAGE);  // only a hint
  }
  ~RequestBuffer() { ::munmap(memory_, size_); }
  RequestBuffer(const RequestBuffer&) = delete;
  RequestBuffer& operator=(const RequestBuffer&) = delete;

  const size_t size_;
  void* memory_;
};

}  // namespace graphlane
