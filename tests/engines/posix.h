// The system calls of both engines. An engine cannot go on without its graph, so a failed call ends
// the program with the file's name and the offset.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace engines {

inline constexpr size_t kPageBytes = 4096;

// Prints "PROGRAM: ..." and exits with status 1, also from a thread.
[[noreturn]] void die(const char* format, ...) __attribute__((format(printf, 1, 2)));

// File: a descriptor with the path it came from.
class File {
 public:
  File(std::string path, int flags, mode_t mode = 0);
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }

  // A second descriptor of the same open file, as GraphChi's dup().
  File duplicate() const;
  size_t size_bytes() const;
  void truncate(size_t size_bytes) const;

  // One pread of `length` bytes that must give exactly `expected`. Engines take a short read for
  // the whole and compute nonsense; this one ends with an error instead.
  void pread_expecting(void* buffer, size_t length, off_t offset, size_t expected) const;
  void pread_exact(void* buffer, size_t length, off_t offset) const {
    pread_expecting(buffer, length, offset, length);
  }
  // All of `length` bytes; write() goes on from the file position.
  void pwrite_all(const void* buffer, size_t length, off_t offset) const;
  void write_all(const void* buffer, size_t length) const;

 private:
  File() = default;

  std::string path_;
  int fd_ = -1;
};

// stat().st_size, or -1 where there is no such file.
int64_t file_size_bytes(const std::string& path);

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace engines
