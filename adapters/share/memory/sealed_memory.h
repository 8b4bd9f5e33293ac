// Memory that processes share and none can change: a memfd that is filled, then sealed.
//
// F_SEAL_WRITE, SHRINK and GROW make it constant for every process and user, also through
// /proc/self/fd/N, and for its maker. (F_SEAL_FUTURE_WRITE would leave the maker's own mapping
// writable; a file mode would bind other users only.) The kernel refuses the seal while a writable
// mapping exists, so the receiver need not trust the maker. Closing the descriptor frees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane::share {

// Mapping: owns an mmap()ed range.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  // Size 0 is valid.
  static Outcome<Mapping> of_sealed(int memory, uint64_t size_bytes);
  static Outcome<Mapping> for_filling(int memory, uint64_t size_bytes);
  // Private anonymous memory.
  static Outcome<Mapping> private_memory(uint64_t size_bytes);

  // Frees the pages behind `size_bytes` of private memory; at least one page stays.
  void shrink(uint64_t size_bytes);

  char* data() { return data_; }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<const char> bytes() const { return {data_, size_}; }

 private:
  static Outcome<Mapping> map(int memory, uint64_t size_bytes, int protection, int flags);

  char* data_ = nullptr;
  size_t size_ = 0;
};

// A memfd with all pages allocated, so that filling it cannot fail for lack of memory.
Outcome<Fd> make_memory(uint64_t size_bytes);

// EBUSY: a writable mapping exists.
Outcome<void> seal(int memory);

// Sealed memory with these bytes.
Outcome<Fd> make_sealed(std::span<const char> bytes);

// The size of another process's sealed memory; EPERM: it is not sealed.
Result<uint64_t> sealed_size(int memory);

}  // namespace graphlane::share
