// Counts what is allocated in the process while it reads: `allocations FILE`.
//
// Sweeps the file in blocks of 8 MiB, then reads pages at random, all of it once to warm up. Prints
// how many allocations any thread of the process made after that. malloc() and its kin are replaced
// by these here, which free nothing.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kBlock = 8 << 20;
constexpr size_t kPage = 4096;
constexpr int kPages = 2000;

std::atomic<int> allocation_count{0};
alignas(16) unsigned char memory[4 << 20];
std::atomic<size_t> taken{0};

void* take(size_t bytes) {
  ++allocation_count;
  const size_t begin = taken.fetch_add((bytes + 15) / 16 * 16);
  return begin + bytes <= sizeof memory ? memory + begin : nullptr;
}

bool read_all(int fd, off_t size, char* room) {
  for (off_t at = 0; at < size; at += kBlock) {
    if (::pread(fd, room, kBlock, at) <= 0) return false;
  }
  for (int i = 0; i < kPages; ++i) {
    const off_t at = static_cast<off_t>(i * 7919u % (static_cast<size_t>(size) / kPage) * kPage);
    if (::pread(fd, room, kPage, at) <= 0) return false;
  }
  return true;
}

}  // namespace

extern "C" {
void* malloc(size_t bytes) { return take(bytes); }
void* calloc(size_t count, size_t bytes) { return take(count * bytes); }  // new memory is zero
void* realloc(void* old, size_t bytes) {
  void* const made = take(bytes);
  if (old != nullptr && made != nullptr) {
    const auto left =
        static_cast<size_t>(memory + sizeof memory - static_cast<unsigned char*>(old));
    std::memmove(made, old, bytes < left ? bytes : left);
  }
  return made;
}
void free(void*) {}
}

int main(int, char** argv) {
  const int fd = ::open(::strdup(argv[1]), O_RDONLY);  // one allocation, by libc
  struct stat st;
  if (allocation_count == 0 || fd < 0 || ::fstat(fd, &st) != 0) return 1;
  void* const room =
      ::mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!read_all(fd, st.st_size, static_cast<char*>(room))) return 1;
  const int before = allocation_count;
  for (int sweep = 0; sweep < 3; ++sweep) {
    if (!read_all(fd, st.st_size, static_cast<char*>(room))) return 1;
  }
  const int made = allocation_count - before;
  std::printf("%d allocations\n", made);
  return 0;
}
