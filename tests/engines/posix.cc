#include "tests/engines/posix.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace engines {

void die(const char* format, ...) {
  std::string line = std::string(program_invocation_short_name) + ": " + format + "\n";
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, line.c_str(), arguments);
  va_end(arguments);
  // Not exit(): other threads still run, and destructors would race with them.
  std::_Exit(1);
}

File::File(std::string path, int flags, mode_t mode)
    : path_(std::move(path)), fd_(::open(path_.c_str(), flags, mode)) {
  if (fd_ < 0) die("%s: open: %s", path_.c_str(), std::strerror(errno));
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

File File::duplicate() const {
  File copy;
  copy.path_ = path_;
  copy.fd_ = ::dup(fd_);
  if (copy.fd_ < 0) die("%s: dup: %s", path_.c_str(), std::strerror(errno));
  return copy;
}

size_t File::size_bytes() const {
  const off_t end = ::lseek(fd_, 0, SEEK_END);
  if (end < 0) die("%s: lseek: %s", path_.c_str(), std::strerror(errno));
  ::lseek(fd_, 0, SEEK_SET);
  return static_cast<size_t>(end);
}

void File::truncate(size_t size_bytes) const {
  if (::ftruncate(fd_, static_cast<off_t>(size_bytes)) != 0) {
    die("%s: ftruncate: %s", path_.c_str(), std::strerror(errno));
  }
}

void File::pread_expecting(void* buffer, size_t length, off_t offset, size_t expected) const {
  const ssize_t n = ::pread(fd_, buffer, length, offset);
  const auto at = static_cast<long long>(offset);
  if (n < 0) die("%s: offset %lld: pread: %s", path_.c_str(), at, std::strerror(errno));
  if (static_cast<size_t>(n) != expected) {
    die("%s: offset %lld: pread of %zu bytes gave %zd, expected %zu", path_.c_str(), at, length, n,
        expected);
  }
}

void File::pwrite_all(const void* buffer, size_t length, off_t offset) const {
  for (size_t done = 0; done < length;) {
    const ssize_t n = ::pwrite(fd_, static_cast<const char*>(buffer) + done, length - done,
                               offset + static_cast<off_t>(done));
    if (n <= 0) {
      die("%s: offset %lld: pwrite: %s", path_.c_str(),
          static_cast<long long>(offset) + static_cast<long long>(done), std::strerror(errno));
    }
    done += static_cast<size_t>(n);
  }
}

void File::write_all(const void* buffer, size_t length) const {
  for (size_t done = 0; done < length;) {
    const ssize_t n = ::write(fd_, static_cast<const char*>(buffer) + done, length - done);
    if (n <= 0) die("%s: write: %s", path_.c_str(), std::strerror(errno));
    done += static_cast<size_t>(n);
  }
}

int64_t file_size_bytes(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 ? status.st_size : -1;
}

}  // namespace engines
