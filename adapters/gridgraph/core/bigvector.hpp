// BigVector: an array with one T for each vertex, in a mapped file.
//
// The mapping is shared, so that the kernel writes back and reclaims what does not fit in memory. load()
// and save() are hints only, where GridGraph copies.
//
// Vertices' data are the job's own. Two jobs on a grid would use the same file, `pagerank` in the grid's
// directory. The second job finds it locked, or owned by another user. It then works on an unnamed file
// there, which is removed with the job. To keep all results, give each job a directory in
// $GRAPHLANE_VERTEX_DIR.
#ifndef GRAPHLANE_GRIDGRAPH_BIGVECTOR_HPP
#define GRAPHLANE_GRIDGRAPH_BIGVECTOR_HPP

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

template <class T>
class BigVector {
 public:
  BigVector() = default;
  BigVector(std::string path, size_t element_count) { init(path, element_count); }
  explicit BigVector(std::string path) { init(path); }
  BigVector(const BigVector&) = delete;
  BigVector& operator=(const BigVector&) = delete;
  ~BigVector() { close(); }

  // Uses a file of this length as it is; resets any other to zeros.
  void init(std::string path, size_t element_count) {
    close();
    length = element_count;
    open_own(place_of(path));
    const off_t bytes = static_cast<off_t>(length * sizeof(T));
    if (size_bytes() != bytes) resize(bytes);
    open_mmap();
  }
  // Takes its length from the file.
  void init(std::string path) {
    close();
    path_ = place_of(path);
    fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) fail("cannot open");
    length = static_cast<size_t>(size_bytes()) / sizeof(T);
    open_mmap();
  }

  void open_mmap() {
    if (data != nullptr || length == 0) return;
    void* address = ::mmap(nullptr, length * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) fail("cannot map");
    data = static_cast<T*>(address);
  }
  void close_mmap() {
    if (data != nullptr) ::munmap(data, length * sizeof(T));
    data = nullptr;
  }
  void sync() {
    if (data != nullptr) ::msync(data, length * sizeof(T), MS_SYNC);
  }

  void fill(const T& value) {
    for (size_t i = 0; i < length; ++i) data[i] = value;
  }
  T& operator[](size_t i) { return data[i]; }

  // Hints that [begin, end) will be used soon.
  void load(size_t begin, size_t end) { advise(begin, end, MADV_WILLNEED); }
  void save() {}
  // Locks [begin, end) in memory, as far as the user may.
  void lock(size_t begin, size_t end) {
    const Pages pages(data, begin, end);
    (void)::mlock(pages.begin, pages.bytes);
  }
  void unlock(size_t begin, size_t end) {
    const Pages pages(data, begin, end);
    (void)::munlock(pages.begin, pages.bytes);
  }

  int fd = -1;
  T* data = nullptr;
  size_t length = 0;

 private:
  struct Pages {
    Pages(T* data, size_t first, size_t end) {
      const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
      const size_t address = reinterpret_cast<size_t>(data + first) / page * page;
      begin = reinterpret_cast<void*>(address);
      bytes = reinterpret_cast<size_t>(data + end) - address;
    }
    void* begin;
    size_t bytes;
  };

  void advise(size_t begin, size_t end, int advice) {
    if (begin >= end) return;
    const Pages pages(data, begin, end);
    (void)::madvise(pages.begin, pages.bytes, advice);
  }

  void close() {
    close_mmap();
    if (fd >= 0) ::close(fd);
    fd = -1;
    length = 0;
  }

  static std::string place_of(const std::string& path) {
    const char* directory = ::getenv("GRAPHLANE_VERTEX_DIR");
    return directory == nullptr ? path : std::string(directory) + "/" + path.substr(path.rfind('/') + 1);
  }

  void open_own(const std::string& path) {
    path_ = path;
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    // On a filesystem without locks the job assumes to be alone.
    if (fd >= 0 && (::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)) return;
    if (fd < 0 && errno != EACCES && errno != EPERM) fail("cannot open");  // else another user owns it
    if (fd >= 0) ::close(fd);
    // mkostemp(), because some filesystems lack O_TMPFILE, such as a mounted volume.
    std::string unnamed = path + ".XXXXXX";
    fd = ::mkostemp(&unnamed[0], O_CLOEXEC);
    if (fd < 0) fail("another's, or in use, and no file can be made beside it");
    ::unlink(unnamed.c_str());
  }

  // Resets the file to zeros. It is truncated only if it has bytes: btrfs and ext4 take a truncation to
  // nothing for a replacement, and write the file to its device at close.
  void resize(off_t bytes) {
    if (size_bytes() != 0 && ::ftruncate(fd, 0) != 0) fail("cannot resize");
    if (::ftruncate(fd, bytes) != 0) fail("cannot resize");
  }

  off_t size_bytes() const {
    struct stat st;
    if (::fstat(fd, &st) != 0) fail("cannot stat");
    return st.st_size;
  }

  // Ends the program, because GridGraph's programs handle no errors.
  [[noreturn]] void fail(const char* what) const {
    ::fprintf(stderr, "%s: %s: %s\n", path_.c_str(), what, ::strerror(errno));
    ::exit(1);
  }

  std::string path_;
};

#endif
