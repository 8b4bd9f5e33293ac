// Memory that processes share and nobody can change: a memfd that is filled, then
// sealed.
//
// F_SEAL_WRITE, SHRINK and GROW make it a constant for every process and every user, also
// for those who open /proc/self/fd/N again, and for us. (F_SEAL_FUTURE_WRITE would leave
// the maker's own mapping writable; a mode would bind other users only.) The kernel
// refuses the seal while anybody has it mapped writable, so whoever holds sealed memory
// need not trust its maker. It is given back by closing it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane::share {

// Mapping: some memory of another, until it goes.
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

  // No bytes at all are a mapping too.
  static Outcome<Mapping> of_sealed(int memory, uint64_t size_bytes);
  static Outcome<Mapping> for_filling(int memory, uint64_t size_bytes);
  // Memory that nobody shares, page by page.
  static Outcome<Mapping> private_memory(uint64_t size_bytes);

  // Gives back the pages behind so many bytes of private memory; at least one stays.
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

// Its pages are there: filling it cannot fail half-way for lack of memory.
Outcome<Fd> make_memory(uint64_t size_bytes);

// EBUSY: somebody has it mapped writable.
Outcome<void> seal(int memory);

// Memory of `bytes`, sealed.
Outcome<Fd> make_sealed(std::span<const char> bytes);

// The size of what another process says is sealed memory; EPERM: it is not.
Result<uint64_t> sealed_size(int memory);

}  // namespace graphlane::share
