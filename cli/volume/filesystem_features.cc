#include "cli/volume/filesystem_features.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/base/uuid.h"
#include "iomgr/volume/stub/part_record_io.h"

namespace graphlane::cli {
namespace {

constexpr size_t kBlockBytes = 4096;

// A file of one block. It has no name where the filesystem can do that, else it has one until the
// end.
class Probe {
 public:
  static Result<Probe> make(int directory_fd) {
    Probe probe(directory_fd);
    probe.fd_ = Fd(::openat(directory_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!probe.fd_) {
      const std::string name = "probe-" + std::string(UuidText(Uuid::random()).view());
      probe.fd_ =
          Fd(::openat(directory_fd, name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
      if (!probe.fd_) return last_errno();
      probe.name_ = name;
    }
    const std::vector<char> zeros(kBlockBytes);
    if (::pwrite(probe.fd_.get(), zeros.data(), zeros.size(), 0) < 0) return last_errno();
    return probe;
  }
  Probe(Probe&&) = default;
  ~Probe() {
    if (fd_ && !name_.empty()) ::unlinkat(directory_fd_, name_.c_str(), 0);
  }

  int fd() const { return fd_.get(); }

 private:
  explicit Probe(int directory_fd) : directory_fd_(directory_fd) {}
  int directory_fd_;
  Fd fd_;
  std::string name_;
};

bool has_direct_io(int fd) {
  const Fd direct = reopen(fd, O_RDONLY | O_DIRECT);
  alignas(kBlockBytes) char block[kBlockBytes];
  return direct &&
         ::pread(direct.get(), block, sizeof block, 0) == static_cast<ssize_t>(sizeof block);
}

bool has_user_attributes(int fd) { return ::fsetxattr(fd, kPartRecordAttribute, "", 0, 0) == 0; }

bool has_birth_times(int fd) {
  struct statx seen;
  return ::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_BTIME, &seen) == 0 &&
         (seen.stx_mask & STATX_BTIME) != 0;
}

}  // namespace

Result<FilesystemFeatures> try_filesystem(int directory_fd) {
  const Result<Probe> probe = Probe::make(directory_fd);
  if (!probe) return probe.error();
  const int fd = probe->fd();
  return FilesystemFeatures{.direct_io = has_direct_io(fd),
                            .user_attributes = has_user_attributes(fd),
                            .birth_times = has_birth_times(fd)};
}

std::string missing_features(const FilesystemFeatures& features) {
  std::vector<std::string> names;
  if (!features.direct_io) names.emplace_back("direct I/O");
  if (!features.user_attributes) names.emplace_back("user attributes");
  if (!features.birth_times) names.emplace_back("birth times");
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace graphlane::cli
