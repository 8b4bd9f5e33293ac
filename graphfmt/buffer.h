// Buffer: a large piece of memory of its own, page-aligned and zero until written. It costs memory
// only where it was touched, and returns all of it at once, which malloc() does not promise. So a
// budget in bytes can be kept.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

#include "iomgr/base/error.h"

namespace graphlane::graphfmt {

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }

  static Outcome<Buffer> allocate(size_t size_bytes) { return allocate(size_bytes, MAP_PRIVATE); }
  // Processes that are forked later share it.
  static Outcome<Buffer> allocate_shared(size_t size_bytes) {
    return allocate(size_bytes, MAP_SHARED);
  }
  // At least `size_bytes`; the contents are lost when it has to grow.
  Outcome<void> reserve(size_t size_bytes) {
    if (size_bytes <= size_) return {};
    *this = Buffer();
    auto grown = allocate(size_bytes);
    if (!grown) return grown.error();
    *this = std::move(*grown);
    return {};
  }

  char* data() { return data_; }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  explicit operator bool() const { return data_ != nullptr; }

  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  static Outcome<Buffer> allocate(size_t size_bytes, int sharing) {
    Buffer buffer;
    if (size_bytes == 0) return buffer;
    void* data =
        ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return make_error(ENOMEM, "no memory for {} bytes", size_bytes);
    buffer.data_ = static_cast<char*>(data);
    buffer.size_ = size_bytes;
    return buffer;
  }

  char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace graphlane::graphfmt
