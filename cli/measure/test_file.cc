#include "cli/measure/test_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <vector>

#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/unnamed_file.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/base/size.h"

namespace graphlane::cli {
namespace {

constexpr size_t kChunkBytes = 4u << 20;
// Synced in pieces of this size, so that an interrupt need not wait for the whole file.
constexpr uint64_t kSyncBytes = 64u << 20;

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
    const bool is_sync_due =
        (at + chunk.size()) % kSyncBytes == 0 || at + chunk.size() == size_bytes;
    if (is_sync_due && ::fdatasync(fd.get()) != 0) {
      return os_error(errno, directory, "cannot write a test file");
    }
    progress.add(chunk.size());
  }
  return {};
}

}  // namespace

Outcome<TestFile> TestFile::make(const std::string& directory, uint64_t size_bytes) {
  Result<Fd> fd = make_unnamed_file(directory);
  if (!fd) return os_error(fd.error().code, directory, "cannot create a test file");
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
