// storm PLAIN FILE VISITS FORKS CHILD_THREADS SEED: 32 threads open, read and close FILE while the
// process forks, and its children do the same. FILE must contain the bytes of PLAIN. It knows
// nothing of Graphlane.
//
// With CHILD_THREADS 0 a child has one thread and makes only the calls that POSIX allows after a
// fork in a threaded program. Sanitizers cannot do more: without Graphlane, gcc 12's ASan hangs in
// malloc, and its TSan refuses a child's threads.
//
// Fails on a wrong byte or a failed call. Prints how many descriptors are open at the end that were
// not at the beginning.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 32;
constexpr size_t kPage = 4096;
constexpr size_t kReadMax = 98 * kPage;

const char* path = nullptr;
std::vector<char> expected;  // the plain file's bytes
std::atomic<int> failures{0};

void fail(const char* what) {
  if (failures.fetch_add(1) < 5) std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
}

// One open, a few reads of each kind, one close. Every other read is of whole pages, which can
// bypass the page cache.
void visit(std::mt19937& chance, char* buffer) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail("open");
  off_t position = 0;
  for (int i = 0; i < 3; ++i) {
    const bool sequential = i == 1;
    const size_t unit = chance() % 2 == 0 ? kPage : 1;
    const size_t length = chance() % kReadMax / unit * unit;
    const size_t place = chance() % expected.size() / unit * unit;
    const off_t offset = sequential ? position : static_cast<off_t>(place);
    const size_t readable = std::min(length, expected.size() - static_cast<size_t>(offset));
    const ssize_t n = sequential ? read(fd, buffer, length) : pread(fd, buffer, length, offset);
    if (n != static_cast<ssize_t>(readable)) {
      fail("a read of another length");
    } else if (std::memcmp(buffer, expected.data() + offset, readable) != 0) {
      fail("wrong bytes");
    }
    if (sequential) position += n;
  }
  if (close(fd) != 0) fail("close");
}

void work(int rounds, unsigned seed, char* buffer) {
  std::mt19937 chance(seed);
  for (int i = 0; i < rounds; ++i) visit(chance, buffer);
}

void work_in_own_memory(int rounds, unsigned seed) {
  const std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char*>(std::aligned_alloc(kPage, kReadMax)), std::free);
  work(rounds, seed, memory.get());
}

// Does so in a child, forked while the parent's threads were busy.
[[noreturn]] void be_a_child(int thread_count, unsigned seed) {
  alignas(kPage) static char memory[kReadMax];
  failures = 0;
  if (thread_count == 0) work(20, seed, memory);
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back(work_in_own_memory, 5, seed + static_cast<unsigned>(t));
  }
  for (std::thread& thread : threads) thread.join();
  _exit(failures == 0 ? 0 : 1);
}

int open_descriptors() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: storm PLAIN FILE VISITS FORKS CHILD_THREADS SEED\n");
    return 2;
  }
  path = argv[2];
  const int visits = std::atoi(argv[3]);
  const int forks = std::atoi(argv[4]);
  const int child_threads = std::atoi(argv[5]);
  const auto seed = static_cast<unsigned>(std::strtoul(argv[6], nullptr, 10));
  const int plain = open(argv[1], O_RDONLY);
  struct stat st;
  if (plain < 0 || fstat(plain, &st) != 0) return 2;
  expected.resize(static_cast<size_t>(st.st_size));
  if (pread(plain, expected.data(), expected.size(), 0) != st.st_size) return 2;
  const int open_before = open_descriptors();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back(work_in_own_memory, (visits + kThreads - 1) / kThreads, seed + 1000 + t);
  }
  int children_failed = 0;
  for (int i = 0; i < forks; ++i) {
    const pid_t child = fork();
    if (child == 0) be_a_child(child_threads, seed + 5000 + 10 * static_cast<unsigned>(i));
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) ++children_failed;
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%d failures, %d failed children, %d descriptors more\n", failures.load(),
              children_failed, open_descriptors() - open_before);
  return failures == 0 && children_failed == 0 ? 0 : 1;
}
