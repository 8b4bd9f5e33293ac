#include "tests/engines/vertex_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace engines {
namespace {

size_t page_floor(size_t byte) { return byte / kPageBytes * kPageBytes; }
size_t page_ceil(size_t byte) { return page_floor(byte + kPageBytes - 1); }

// GridGraph writes uninitialized heap memory; zeros serve as well.
const std::string& create(const std::string& path, size_t length_bytes) {
  if (file_size_bytes(path) < 0) {
    FILE* made = std::fopen(path.c_str(), "wb");
    if (made == nullptr) die("%s: fopen: %s", path.c_str(), std::strerror(errno));
    std::fclose(made);
  }
  if (file_size_bytes(path) == static_cast<int64_t>(length_bytes)) return path;
  if (::truncate(path.c_str(), static_cast<off_t>(length_bytes)) != 0) {
    die("%s: truncate: %s", path.c_str(), std::strerror(errno));
  }
  const File file(path, O_WRONLY);
  alignas(kPageBytes) static const char page[kPageBytes] = {};
  for (size_t done = 0; done < length_bytes; done += kPageBytes) {
    file.write_all(page, std::min(kPageBytes, length_bytes - done));
  }
  return path;
}

}  // namespace

VertexStore::VertexStore(const std::string& path, size_t length_bytes)
    : length_bytes_(length_bytes), file_(create(path, length_bytes), O_RDWR | O_DIRECT) {
  map();
}

VertexStore::~VertexStore() { ::munmap(data_, length_bytes_); }

void VertexStore::map() {
  ::posix_fadvise(file_.fd(), 0, 0, POSIX_FADV_SEQUENTIAL);
  void* mapped = ::mmap(nullptr, length_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd(), 0);
  if (mapped == MAP_FAILED) die("%s: mmap: %s", file_.path().c_str(), std::strerror(errno));
  data_ = static_cast<char*>(mapped);
  first_byte_ = 0;
}

void VertexStore::load_bytes(size_t begin, size_t end) {
  ::munmap(data_, length_bytes_);
  first_byte_ = page_floor(begin);
  end_byte_ = end;
  const size_t window_bytes = page_ceil(end) - first_byte_;
  void* window =
      ::mmap(nullptr, window_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (window == MAP_FAILED) die("%s: no memory for a window", file_.path().c_str());
  data_ = static_cast<char*>(window);
  // The last page may extend past the end of the file: that much less is read.
  const size_t file_end = static_cast<size_t>(file_size_bytes(file_.path()));
  file_.pread_expecting(data_, window_bytes, static_cast<off_t>(first_byte_),
                        std::min(window_bytes, file_end - first_byte_));
}

void VertexStore::save_bytes() {
  const size_t window_bytes = page_ceil(end_byte_) - first_byte_;
  file_.pwrite_all(data_, window_bytes, static_cast<off_t>(first_byte_));
  ::munmap(data_, window_bytes);
  map();
}

void VertexStore::lock_bytes(size_t begin, size_t end, bool locked) {
  (locked ? ::mlock : ::munlock)(data_ + begin, end - begin);
}

}  // namespace engines
