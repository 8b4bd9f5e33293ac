// VertexFile<T>: one value for each vertex in a file of the graph's directory, used as GridGraph
// uses its BigVector.
//
//   made     stat, truncate, write in pieces of 4096 bytes; kept when the size fits
//   in core  open O_RDWR|O_DIRECT, mmap(MAP_SHARED, PROT_READ|PROT_WRITE) of that
//            descriptor; never msync, the mapping ends with the program
//   out of   load(range): munmap, anonymous memory, pread of whole pages through
//   core     the O_DIRECT descriptor; save(): pwrite of whole pages, mmap again
//
// Mapped pages and direct I/O alternate on one file and must agree. save() may extend the file to a
// whole page, as in GridGraph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/engines/posix.h"

namespace engines {

struct VertexRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool contains(int64_t vertex) const { return begin <= vertex && vertex < end; }
};

// The file without its type; positions are bytes.
class VertexStore {
 public:
  VertexStore(const std::string& path, size_t length_bytes);
  ~VertexStore();
  VertexStore(const VertexStore&) = delete;
  VertexStore& operator=(const VertexStore&) = delete;

 protected:
  void load_bytes(size_t begin, size_t end);
  void save_bytes();
  // GridGraph ends where the limit of locked memory is below a window. Here the memory just stays
  // unlocked.
  void lock_bytes(size_t begin, size_t end, bool locked);

  char* data_ = nullptr;   // what the program sees now
  size_t first_byte_ = 0;  // the file position of data_[0]

 private:
  void map();

  const size_t length_bytes_;
  File file_;
  size_t end_byte_ = 0;  // of the loaded window
};

template <class T>
class VertexFile : public VertexStore {
 public:
  VertexFile(const std::string& path, int64_t vertex_count)
      : VertexStore(path, static_cast<size_t>(vertex_count) * sizeof(T)),
        vertex_count_(vertex_count) {}

  T& operator[](int64_t vertex) {
    return *reinterpret_cast<T*>(data_ + (static_cast<size_t>(vertex) * sizeof(T) - first_byte_));
  }
  void fill(T value) {
    for (int64_t v = 0; v < vertex_count_; ++v) (*this)[v] = value;
  }
  std::vector<T> copy() {
    const T* first = &(*this)[0];
    return std::vector<T>(first, first + vertex_count_);
  }

  void load(VertexRange range) { load_bytes(byte(range.begin), byte(range.end)); }
  void save() { save_bytes(); }
  void lock(VertexRange range) { lock_bytes(byte(range.begin), byte(range.end), true); }
  void unlock(VertexRange range) { lock_bytes(byte(range.begin), byte(range.end), false); }

 private:
  static size_t byte(int64_t vertex) { return static_cast<size_t>(vertex) * sizeof(T); }

  const int64_t vertex_count_;
};

}  // namespace engines
