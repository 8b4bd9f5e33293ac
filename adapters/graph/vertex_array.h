// VertexArray: state of vertices, which programs read at random places. On huge pages where the
// kernel has some, because a walk to a page's entry costs more than the value.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace graphlane {

template <class T>
class HugePageAllocator {
 public:
  using value_type = T;

  HugePageAllocator() = default;
  template <class U>
  HugePageAllocator(const HugePageAllocator<U>&) {}

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < kHugePageBytes) return static_cast<T*>(::operator new(bytes));
    void* const memory = ::operator new(bytes, std::align_val_t{kHugePageBytes});
    // or it stays as it is
    (void)::madvise(memory, bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t count) {
    if (count * sizeof(T) < kHugePageBytes) return ::operator delete(memory);
    ::operator delete(memory, std::align_val_t{kHugePageBytes});
  }
  friend bool operator==(const HugePageAllocator&, const HugePageAllocator&) { return true; }

 private:
  static constexpr size_t kHugePageBytes = 2 << 20;
};

template <class T>
using VertexArray = std::vector<T, HugePageAllocator<T>>;

}  // namespace graphlane
