#include "iomgr/base/files/atomic_file.h"

#include <sys/stat.h>

#include <cstdio>
#include <filesystem>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/uuid.h"

namespace graphlane {
namespace {

constexpr size_t kSmallFileMax = 512u << 10;

// Errors name `path`, which the caller knows, not the temporary file.
Outcome<void> write_temporary(int directory_fd, const std::string& temporary, std::string_view path,
                              std::string_view content, mode_t mode) {
  const Fd file(
      ::openat(directory_fd, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file) return os_error(errno, path, "cannot create");
  if (Result<void> written = write_full(file.get(), content.data(), content.size()); !written) {
    return os_error(written.error().code, path, "cannot write");
  }
  // Overrides the umask: all users need this file to find the parts.
  if (::fchmod(file.get(), mode) != 0) return os_error(errno, path, "cannot set the mode");
  if (::fsync(file.get()) != 0) return os_error(errno, path, "cannot write");
  return {};
}

Outcome<void> sync_directory_of(const std::string& name, int directory_fd) {
  const std::string above = std::filesystem::path(name).parent_path().string();
  return sync_directory(above.empty() ? "." : above, directory_fd);
}

}  // namespace

Outcome<void> write_file_atomically(int directory_fd, const std::string& name,
                                    std::string_view path, std::string_view content, mode_t mode) {
  // Not named by the process number: another container may have the same one.
  const std::string temporary = fmt::format("{}.{}~", name, UuidText(Uuid::random()).view());
  Outcome<void> written = write_temporary(directory_fd, temporary, path, content, mode);
  if (written && ::renameat(directory_fd, temporary.c_str(), directory_fd, name.c_str()) != 0) {
    written = os_error(errno, path, "cannot create");
  }
  if (!written) {
    ::unlinkat(directory_fd, temporary.c_str(), 0);
    return written;
  }
  return sync_directory_of(name, directory_fd);
}

Outcome<void> replace_file_atomically(int directory_fd, const std::string& name,
                                      const std::string& path, std::string_view content) {
  struct stat before;
  if (::fstatat(directory_fd, name.c_str(), &before, AT_SYMLINK_NOFOLLOW) != 0) {
    return os_error(errno, path, "cannot read");
  }
  const std::string temporary = fmt::format("{}.{}~", name, UuidText(Uuid::random()).view());
  Outcome<void> written =
      write_temporary(directory_fd, temporary, path, content, before.st_mode & 07777);
  if (written) {
    (void)!::fchownat(directory_fd, temporary.c_str(), before.st_uid, before.st_gid,
                      AT_SYMLINK_NOFOLLOW);
    if (::renameat(directory_fd, temporary.c_str(), directory_fd, name.c_str()) != 0) {
      written = os_error(errno, path, "cannot replace");
    }
  }
  if (!written) {
    ::unlinkat(directory_fd, temporary.c_str(), 0);
    return written;
  }
  return sync_directory_of(name, directory_fd);
}

Outcome<std::string> read_whole_file(int directory_fd, const char* name, std::string_view path) {
  const Fd file = open_regular(directory_fd, name, O_RDONLY);
  if (!file) return os_error(errno, path, "cannot open");
  std::string content;
  // Most files are a page or less: memory for the largest would cost more than the read.
  for (size_t room = 4096; content.size() <= kSmallFileMax; room = kSmallFileMax + 1) {
    const size_t before = content.size();
    content.resize(room);
    const Result<size_t> got =
        pread_full(file.get(), content.data() + before, room - before, static_cast<off_t>(before));
    if (!got) return os_error(got.error().code, path, "cannot read");
    content.resize(before + *got);
    if (content.size() < room) return content;
  }
  return make_error(EFBIG, "{}: too large to be one of Graphlane's", path);
}

Outcome<void> sync_directory(const std::string& path, int directory_fd) {
  const Fd directory(::openat(directory_fd, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return os_error(errno, path, "cannot open");
  // Some network filesystems do not sync directories: EINVAL.
  if (::fsync(directory.get()) != 0 && errno != EINVAL) {
    return os_error(errno, path, "cannot sync");
  }
  return {};
}

}  // namespace graphlane
