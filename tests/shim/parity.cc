// parity PLAIN STRIPED SEED [--map]: makes the same calls on two files of equal content, and
// compares results, errnos and bytes. It knows nothing of Graphlane: it sees what any program sees.
// Built with _FORTIFY_SOURCE, so that the checked names of read and open are called too. `--map`
// adds the calls that the kernel must serve: mmap, sendfile, copy_file_range.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

// The outcome of a call: its result, its errno if it failed, and the bytes that it read.
struct Outcome {
  int64_t result = 0;
  int error = 0;
  uint64_t digest = 0;
  bool operator==(const Outcome&) const = default;
};

uint64_t digest_of(const void* data, size_t length) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (size_t i = 0; i < length; ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

Outcome outcome_of(int64_t result, const void* data = nullptr, size_t length = 0) {
  return {result, result < 0 ? errno : 0, length > 0 ? digest_of(data, length) : 0};
}

int failures = 0;
int checks = 0;

// Makes the same call on each of the two files.
void compare(const std::string& what, const char* plain, const char* striped,
             const std::function<Outcome(const char*)>& call) {
  errno = 0;
  const Outcome a = call(plain);
  errno = 0;
  const Outcome b = call(striped);
  ++checks;
  if (a == b) return;
  ++failures;
  std::printf("%s: plain %lld (errno %d, %016llx), striped %lld (errno %d, %016llx)\n",
              what.c_str(), static_cast<long long>(a.result), a.error,
              static_cast<unsigned long long>(a.digest), static_cast<long long>(b.result), b.error,
              static_cast<unsigned long long>(b.digest));
}

class File {
 public:
  explicit File(const char* path, int flags = O_RDONLY) : fd_(open(path, flags)) {}
  ~File() { close(fd_); }
  operator int() const { return fd_; }

 private:
  int fd_;
};

char* aligned_buffer(size_t size) {
  void* buffer = nullptr;
  if (posix_memalign(&buffer, 4096, size) != 0) abort();
  return static_cast<char*>(buffer);
}

constexpr size_t kBufferSize = 25165824;
char* const buffer = aligned_buffer(kBufferSize);

// Bad arguments that the compiler cannot detect.
char* volatile nowhere = reinterpret_cast<char*>(16);
volatile int minus_one = -1;

Outcome read_result(int64_t n) { return outcome_of(n, buffer, n > 0 ? static_cast<size_t>(n) : 0); }

void compare_preads(const char* plain, const char* striped, uint64_t seed) {
  std::mt19937_64 random(seed);
  struct stat st;
  stat(plain, &st);
  for (const int flags : {O_RDONLY, O_RDONLY | O_DIRECT}) {
    const File a(plain, flags);
    const File b(striped, flags);
    for (int round = 0; round < 150; ++round) {
      off_t offset = static_cast<off_t>(random() % static_cast<uint64_t>(st.st_size + 100000));
      size_t length = random() % (round % 10 == 0 ? kBufferSize : 200000);
      if (flags & O_DIRECT) {
        offset = offset / 4096 * 4096;
        length = length / 4096 * 4096;
      }
      compare("pread " + std::to_string(length) + " @" + std::to_string(offset) + " seed " +
                  std::to_string(seed) + (flags & O_DIRECT ? " direct" : ""),
              plain, striped, [&](const char* path) {
                const int fd = path == plain ? a : b;
                return read_result(pread(fd, buffer, length, offset));
              });
    }
  }
}

// Sequential reads to the end, in pieces of one size.
Outcome read_to_end(int fd, size_t piece) {
  uint64_t hash = 0;
  int64_t total = 0;
  while (true) {
    const ssize_t n = read(fd, buffer, piece);
    if (n < 0) return outcome_of(n);
    if (n == 0) break;
    hash = hash * 31 + digest_of(buffer, static_cast<size_t>(n));
    total += n;
  }
  return {total, 0, hash};
}

void compare_sequential(const char* plain, const char* striped) {
  for (const size_t piece : {size_t{997}, size_t{65536}, size_t{1000003}, kBufferSize}) {
    compare("read to the end by " + std::to_string(piece), plain, striped, [&](const char* path) {
      const File fd(path);
      return read_to_end(fd, piece);
    });
  }
  compare("read by 24 MiB, direct", plain, striped, [&](const char* path) {
    const File fd(path, O_RDONLY | O_DIRECT);
    return read_to_end(fd, kBufferSize);
  });
}

void compare_vectors(const char* plain, const char* striped) {
  const auto vector = [](std::vector<size_t> lengths) {
    std::vector<iovec> iov;
    size_t at = 0;
    for (const size_t length : lengths) {
      iov.push_back({buffer + at, length});
      at += length;
    }
    return iov;
  };
  const auto iov = vector({1, 0, 70000, 4096, 3, 2000000});
  const int count = static_cast<int>(iov.size());
  compare("readv", plain, striped, [&](const char* path) {
    const File fd(path);
    (void)!readv(fd, iov.data(), count);
    const int64_t n = readv(fd, iov.data(), count);
    const Outcome first = read_result(n);
    return Outcome{n + lseek(fd, 0, SEEK_CUR), 0, first.digest};
  });
  for (const off_t offset : {off_t{0}, off_t{65535}, off_t{-1}, off_t{1} << 50}) {
    compare("preadv @" + std::to_string(offset), plain, striped, [&](const char* path) {
      const File fd(path);
      return read_result(preadv(fd, iov.data(), count, offset));
    });
  }
  compare("preadv2 at the file offset", plain, striped, [&](const char* path) {
    const File fd(path);
    lseek(fd, 12345, SEEK_SET);
    const Outcome got = read_result(preadv2(fd, iov.data(), count, -1, 0));
    return Outcome{got.result + lseek(fd, 0, SEEK_CUR), got.error, got.digest};
  });
  compare("readv of a negative count", plain, striped, [&](const char* path) {
    const File fd(path);
    return outcome_of(readv(fd, iov.data(), minus_one));
  });
}

void compare_refusals(const char* plain, const char* striped) {
  const auto with = [&](const char* what, int flags, std::function<int64_t(int)> call) {
    compare(what, plain, striped, [&](const char* path) {
      const File fd(path, flags);
      return outcome_of(call(fd));
    });
  };
  with("pread at a negative offset", O_RDONLY, [](int fd) { return pread(fd, buffer, 10, -5); });
  with("pread into nowhere", O_RDONLY, [](int fd) { return pread(fd, nowhere, 100000, 0); });
  with("read into nowhere leaves the offset", O_RDONLY, [](int fd) {
    const ssize_t n = read(fd, nowhere, 3000000);
    return n == -1 && errno == EFAULT ? lseek(fd, 0, SEEK_CUR) : int64_t{-2};
  });
  with("read of nothing", O_RDONLY, [](int fd) { return read(fd, buffer, 0); });
  with("read of O_PATH", O_PATH, [](int fd) { return read(fd, buffer, 10); });
  with("write to a read-only descriptor", O_RDONLY, [](int fd) { return write(fd, "x", 1); });
  with("lseek before the start", O_RDONLY, [](int fd) { return lseek(fd, -1, SEEK_SET); });
  with("lseek with a strange whence", O_RDONLY, [](int fd) { return lseek(fd, 0, 77); });
  compare("open as a directory", plain, striped,
          [](const char* path) { return outcome_of(open(path, O_RDONLY | O_DIRECTORY)); });
  compare("open of a name below it", plain, striped, [](const char* path) {
    return outcome_of(open((std::string(path) + "/x").c_str(), O_RDONLY));
  });
  compare("exclusive creation", plain, striped,
          [](const char* path) { return outcome_of(open(path, O_RDWR | O_CREAT | O_EXCL, 0600)); });
}

void compare_sizes(const char* plain, const char* striped) {
  compare("stat", plain, striped, [](const char* path) {
    struct stat st;
    const int status = stat(path, &st);
    return Outcome{st.st_size, status, st.st_mode & S_IFMT};
  });
  compare("lstat", plain, striped, [](const char* path) {
    struct stat st;
    const int status = lstat(path, &st);
    return Outcome{st.st_size, status, 0};
  });
  compare("fstat", plain, striped, [](const char* path) {
    const File fd(path);
    struct stat st;
    const int status = fstat(fd, &st);
    return Outcome{st.st_size, status, 0};
  });
  compare("fstatat of an open descriptor", plain, striped, [](const char* path) {
    const File fd(path);
    struct stat st;
    const int status = fstatat(fd, "", &st, AT_EMPTY_PATH);
    return Outcome{st.st_size, status, 0};
  });
  compare("statx", plain, striped, [](const char* path) {
    struct statx stx;
    const int status = statx(AT_FDCWD, path, 0, STATX_SIZE, &stx);
    return Outcome{static_cast<int64_t>(stx.stx_size), status, 0};
  });
  for (const int mode : {F_OK, R_OK, X_OK}) {
    compare("access " + std::to_string(mode), plain, striped,
            [&](const char* path) { return outcome_of(access(path, mode)); });
  }
  for (const int whence : {SEEK_END, SEEK_DATA, SEEK_HOLE}) {
    for (const off_t offset : {off_t{0}, off_t{-10}, off_t{5000}, off_t{1} << 40}) {
      compare("lseek " + std::to_string(offset) + " whence " + std::to_string(whence), plain,
              striped, [&](const char* path) {
                const File fd(path);
                const int64_t at = lseek(fd, offset, whence);
                return outcome_of(at, buffer, 0);
              });
    }
  }
  compare("the last bytes by SEEK_END", plain, striped, [](const char* path) {
    const File fd(path);
    lseek(fd, -1000, SEEK_END);
    return read_result(read(fd, buffer, 5000));
  });
}

// dup, fork and exec share one file offset.
void compare_shared_offsets(const char* plain, const char* striped) {
  compare("dup shares the offset", plain, striped, [](const char* path) {
    const File fd(path);
    const int twin = dup(fd);
    (void)!read(fd, buffer, 100000);
    const Outcome got = read_result(read(twin, buffer, 50000));
    close(twin);
    return Outcome{got.result + lseek(fd, 0, SEEK_CUR), got.error, got.digest};
  });
  compare("dup2 onto another file's descriptor", plain, striped, [](const char* path) {
    const int other = open("/dev/zero", O_RDONLY);
    (void)!read(other, buffer, 10);
    const File fd(path);
    dup2(fd, other);
    const Outcome got = read_result(read(other, buffer, 3000000));
    close(other);
    return got;
  });
  compare("a forked child reads on from where its parent was", plain, striped,
          [](const char* path) {
            const File fd(path);
            (void)!read(fd, buffer, 2500000);
            const pid_t child = fork();
            if (child == 0) {
              _exit(read(fd, buffer, 2100000) == 2100000 ? buffer[2099999] & 127 : 200);
            }
            int status = 0;
            waitpid(child, &status, 0);
            const Outcome got = read_result(read(fd, buffer, 70000));
            return Outcome{WEXITSTATUS(status) * 1000000 + lseek(fd, 0, SEEK_CUR), got.error,
                           got.digest};
          });
  compare("a program inherits it as its standard input", plain, striped, [](const char* path) {
    const File fd(path);
    (void)!read(fd, buffer, 1000);
    int ends[2];
    if (pipe(ends) != 0) abort();
    const pid_t child = fork();
    if (child == 0) {
      dup2(fd, 0);
      dup2(ends[1], 1);
      execlp("wc", "wc", "-c", nullptr);
      _exit(127);
    }
    close(ends[1]);
    const ssize_t n = read(ends[0], buffer, 100);
    close(ends[0]);
    waitpid(child, nullptr, 0);
    return read_result(n);
  });
}

void compare_streams(const char* plain, const char* striped) {
  compare("fopen, fread, fseek, ftell, ungetc, fgets", plain, striped, [](const char* path) {
    FILE* file = fopen(path, "r");
    if (file == nullptr) return outcome_of(-1);
    const size_t n = fread(buffer, 1, 3000001, file);
    uint64_t hash = digest_of(buffer, n);
    fseek(file, -77777, SEEK_END);
    hash = hash * 31 + static_cast<uint64_t>(getc(file));
    ungetc('x', file);
    hash = hash * 31 + static_cast<uint64_t>(getc(file));
    fseek(file, 4095, SEEK_SET);
    char line[200];
    if (fgets(line, sizeof line, file) != nullptr) hash = hash * 31 + digest_of(line, strlen(line));
    const long at = ftell(file);
    rewind(file);
    while (getc_unlocked(file) != EOF) ++hash;
    const int end = feof(file) != 0 && ferror(file) == 0;
    struct stat st;
    fstat(fileno(file), &st);
    fclose(file);
    return Outcome{at * 10 + end + st.st_size, 0, hash};
  });
  compare("fdopen after a read", plain, striped, [](const char* path) {
    const int fd = open(path, O_RDONLY);
    (void)!read(fd, buffer, 5000);
    FILE* file = fdopen(fd, "r");
    const size_t n = fread(buffer, 1, 1000000, file);
    const Outcome got = read_result(static_cast<int64_t>(n));
    fclose(file);
    return got;
  });
  compare("ifstream", plain, striped, [](const char* path) {
    std::ifstream file(path, std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return outcome_of(static_cast<int64_t>(all.size()), all.data(), all.size());
  });
}

void compare_threads(const char* plain, const char* striped) {
  compare("eight threads read blocks from one descriptor", plain, striped, [](const char* path) {
    const File fd(path);
    std::vector<uint64_t> hashes(8);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        std::vector<char> block(3000000);
        for (int i = 0; i < 6; ++i) {
          const ssize_t n = pread(fd, block.data(), block.size(), (t * 6 + i) * 1234567);
          hashes[t] = hashes[t] * 31 + digest_of(block.data(), n > 0 ? static_cast<size_t>(n) : 0);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return outcome_of(0, hashes.data(), hashes.size() * sizeof(uint64_t));
  });
}

// Descriptor numbers that are closed in any way, and then reused for another file.
void compare_descriptor_reuse(const char* plain, const char* striped) {
  compare("a number reused after a close that no library saw", plain, striped,
          [](const char* path) {
            const int fd = open(path, O_RDONLY);
            (void)!read(fd, buffer, 3000000);
            syscall(SYS_close, fd);
            const int other = open("/dev/zero", O_RDONLY);
            const Outcome got = read_result(read(other, buffer, 100000));
            close(other);
            return Outcome{got.result, other == fd ? 0 : 1, got.digest};
          });
  compare("close_range of everything, then again", plain, striped, [](const char* path) {
    int fd = open(path, O_RDONLY);
    (void)!read(fd, buffer, 3000000);
    close_range(3, ~0u, 0);
    fd = open(path, O_RDONLY);
    const Outcome got = read_result(read(fd, buffer, 3000000));
    close(fd);
    return got;
  });
  compare("O_DIRECT switched on and off", plain, striped, [](const char* path) {
    const File fd(path);
    (void)!read(fd, buffer, 4096);
    fcntl(fd, F_SETFL, O_DIRECT);
    uint64_t hash = read_result(read(fd, buffer, 8 << 20)).digest;
    fcntl(fd, F_SETFL, 0);
    hash = hash * 31 + read_result(read(fd, buffer, 1001)).digest;
    return Outcome{lseek(fd, 0, SEEK_CUR), 0, hash};
  });
}

void compare_kernel_copies(const char* plain, const char* striped) {
  compare("a private mapping", plain, striped, [](const char* path) {
    const File fd(path);
    struct stat st;
    fstat(fd, &st);
    void* map = mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) return outcome_of(-1);
    const Outcome got = outcome_of(0, map, static_cast<size_t>(st.st_size));
    munmap(map, static_cast<size_t>(st.st_size));
    return got;
  });
  compare("a shared mapping for reading", plain, striped, [](const char* path) {
    const File fd(path);
    void* map = mmap(nullptr, 1 << 20, PROT_READ, MAP_SHARED, fd, 1 << 20);
    if (map == MAP_FAILED) return outcome_of(-1);
    const Outcome got = outcome_of(0, map, 1 << 20);
    munmap(map, 1 << 20);
    return got;
  });
  compare("sendfile and copy_file_range", plain, striped, [](const char* path) {
    const File fd(path);
    FILE* target = tmpfile();
    int64_t n = sendfile(fileno(target), fd, nullptr, 3000000);
    off_t from = 1000;
    off_t to = 5000000;
    // Between two filesystems the kernel may refuse it (EXDEV).
    n += copy_file_range(fd, &from, fileno(target), &to, 100000, 0) > 0 || errno == EXDEV;
    const ssize_t got = pread(fileno(target), buffer, kBufferSize, 0);
    fclose(target);
    return Outcome{n, 0, digest_of(buffer, static_cast<size_t>(got) < 3000000 ? 0 : 3000000)};
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: parity PLAIN STRIPED SEED [--map]\n");
    return 2;
  }
  const char* plain = argv[1];
  const char* striped = argv[2];
  compare_preads(plain, striped, std::strtoull(argv[3], nullptr, 10));
  compare_sequential(plain, striped);
  compare_vectors(plain, striped);
  compare_refusals(plain, striped);
  compare_sizes(plain, striped);
  compare_shared_offsets(plain, striped);
  compare_streams(plain, striped);
  compare_threads(plain, striped);
  if (argc > 4) compare_kernel_copies(plain, striped);
  compare_descriptor_reuse(plain, striped);
  std::printf("%d checks, %d differences\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
