#include "cli/test_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <vector>

#include "iomgr/base/files/file_io.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/base/size.h"

namespace graphlane::cli {
namespace {

constexpr size_t kChunkBytes = 4u << 20;
// Synced in pieces of this size, so that an interrupt need not wait for the whole file.
constexpr uint64_t kSyncBytes = 64u << 20;

// On a filesystem without O_TMPFILE it makes a named file, and removes the name at once.
Outcome<Fd> open_nameless(const std::string& directory) {
  Fd fd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd) return fd;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
    return os_error(errno, directory, "cannot create a test file");
  }
  std::string name = directory + "/calibrate.XXXXXX";
  fd.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) return os_error(errno, directory, "cannot create a test file");
  ::unlink(name.c_str());
  return fd;
}

Outcome<void> check_space(const Fd& fd, const std::string& directory, uint64_t size_bytes) {
  struct statvfs space;
  if (::fstatvfs(fd.get(), &space) != 0) return os_error(errno, directory, "cannot open");
  const uint64_t free_bytes = space.f_bavail * space.f_frsize;
  if (free_bytes >= size_bytes) return {};
  return make_error(ENOSPC, "{}: {} free, but the test file has {} (--size takes a smaller one)",
                    directory, format_size(free_bytes), format_size(size_bytes));
}

// Fills with random bytes, because some filesystems deduplicate or compress.
void fill(std::vector<char>* chunk, std::mt19937_64* random) {
  for (size_t at = 0; at < chunk->size(); at += sizeof(uint64_t)) {
    const uint64_t number = (*random)();
    std::memcpy(chunk->data() + at, &number, sizeof number);
  }
}

Outcome<void> write_all(const Fd& fd, const std::string& directory, uint64_t size_bytes) {
  Progress progress("test file in " + directory, size_bytes);
  std::mt19937_64 random(size_bytes);
  std::vector<char> chunk(kChunkBytes);
  for (uint64_t at = 0; at < size_bytes; at += chunk.size()) {
    if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
    chunk.resize(std::min<uint64_t>(kChunkBytes, size_bytes - at));
    fill(&chunk, &random);
    if (Result<void> written = pwrite_full(fd.get(), chunk.data(), chunk.size(), at); !written) {
      return os_error(written.error().code, directory, "cannot write a test file");
    }
    const bool is_sync_due = (at + chunk.size()) % kSyncBytes == 0 || at + chunk.size() == size_bytes;
    if (is_sync_due && ::fdatasync(fd.get()) != 0) {
      return os_error(errno, directory, "cannot write a test file");
    }
    progress.add(chunk.size());
  }
  return {};
}

}  // namespace

Outcome<TestFile> TestFile::make(const std::string& directory, uint64_t size_bytes) {
  Outcome<Fd> fd = open_nameless(directory);
  if (!fd) return fd.error();
  TestFile file(std::move(*fd), size_bytes);
  if (Outcome<void> room = check_space(file.fd_, directory, size_bytes); !room) return room.error();
  if (!Fd(::open(file.path().c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC))) {
    return os_error(errno, directory, "cannot be read past the page cache (O_DIRECT)");
  }
  if (Outcome<void> written = write_all(file.fd_, directory, size_bytes); !written) {
    return written.error();
  }
  return file;
}

std::string TestFile::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_.get()); }

}  // namespace graphlane::cli
