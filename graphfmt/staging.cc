#include "graphfmt/staging.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "iomgr/base/files/locked_name.h"
#include "iomgr/base/files/rename_exchange.h"
#include "iomgr/base/files/tree.h"

namespace graphlane::graphfmt {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 100;

// The path with symlinks resolved and without a slash at its end.
Outcome<fs::path> resolved(const std::string& path) {
  if (path.empty()) return make_error(EINVAL, "no output path given");
  std::error_code status;
  fs::path absolute = fs::weakly_canonical(fs::absolute(path), status);
  if (status) return os_error(status.value(), path, "cannot resolve");
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  if (!absolute.has_filename()) return make_error(EINVAL, "'{}': no file name", path);
  return absolute;
}

}  // namespace

Outcome<void> Staging::may_replace(const std::string& path, Kind kind, bool overwrite) {
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0) return {};
  if (!overwrite) return make_error(EEXIST, "{}: exists already (--overwrite replaces it)", path);
  if (kind == Kind::kDirectory && !S_ISDIR(st.st_mode)) {
    return make_error(ENOTDIR, "{}: exists and is not a directory", path);
  }
  if (kind == Kind::kFile && !S_ISREG(st.st_mode)) {
    return make_error(EEXIST, "{}: exists and is not a regular file", path);
  }
  return {};
}

Outcome<Staging> Staging::create(const std::string& final_path, Kind kind, bool overwrite) {
  auto target = resolved(final_path);
  if (!target) return target.error();
  if (auto allowed = may_replace(*target, kind, overwrite); !allowed) {
    Error error = allowed.error();  // it begins with the path, which the user gave otherwise
    error.text.replace(0, target->native().size(), final_path);
    return error;
  }
  const fs::path parent = target->parent_path();
  const std::string prefix = "." + target->filename().string() + ".partial-";
  remove_unlocked(parent, prefix);

  Staging staging;
  staging.kind_ = kind;
  staging.overwrite_ = overwrite;
  // A namesake is another build that runs: in this process, or with our process
  // number in another container.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string suffix = attempt == 0 ? "" : "-" + std::to_string(attempt);
    const std::string path = (parent / (prefix + std::to_string(::getpid()) + suffix)).string();
    if (kind == Kind::kDirectory) {
      if (::mkdir(path.c_str(), 0755) != 0) {
        if (errno == EEXIST) continue;
        return os_error(errno, target->string(), "cannot create");
      }
      staging.fd_ = lock_name(path, O_RDONLY | O_DIRECTORY);
      if (!staging.fd_) ::rmdir(path.c_str());
    } else {
      staging.fd_ = lock_name(path, O_RDWR | O_CREAT | O_EXCL);
      if (!staging.fd_ && errno != EEXIST && errno != EWOULDBLOCK) {
        return os_error(errno, target->string(), "cannot create");
      }
    }
    if (!staging.fd_) continue;
    staging.path_ = path;
    staging.final_path_ = target->string();
    return staging;
  }
  return make_error(EEXIST, "{}: cannot lock a temporary name beside it", target->string());
}

// ENOENT: nothing is there.
int Staging::replace() {
  if (kind_ == Kind::kDirectory) return rename_exchange(AT_FDCWD, path_, final_path_);
  struct stat old;
  if (::lstat(final_path_.c_str(), &old) != 0) return errno;
  // Keeps the old file's mode, so that no user gains the right to read it.
  if (::fchmod(fd_.get(), old.st_mode & 0777) != 0) return errno;
  return ::rename(path_.c_str(), final_path_.c_str()) == 0 ? 0 : errno;
}

Outcome<void> Staging::commit() {
  // Network filesystems report write errors at close(). A duplicate is closed, because `fd_` has
  // the lock.
  const bool is_written =
      kind_ == Kind::kDirectory || ::close(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0)) == 0;
  if (!is_written) return os_error(errno, final_path_, "cannot write");
  // Checked again: another process may have made a file of that name meanwhile.
  if (Outcome<void> may = may_replace(final_path_, kind_, overwrite_); !may) return may;
  // The replaced file keeps its name until this call, which swaps the names.
  int error = overwrite_ ? replace() : ENOENT;
  const bool exchanged = error == 0 && kind_ == Kind::kDirectory;
  if (error == ENOENT) {  // nothing is there
    const Result<void> renamed =
        rename_new({.path = path_, .shown = path_}, {.path = final_path_, .shown = final_path_});
    error = renamed ? 0 : renamed.error().code;
  }
  if (error != 0) return os_error(error, final_path_, "cannot rename the finished output to this");
  std::error_code failed;
  if (exchanged) fs::remove_all(path_, failed);
  const std::string old_path = std::exchange(path_, "");
  fd_.reset();
  if (failed) {
    return os_error(failed.value(), old_path, "written, but cannot remove what it replaces");
  }
  return {};
}

Error Staging::with_final_name(Error error, const std::string& shown) const {
  std::string& text = error.text;
  for (size_t at = path_.empty() ? std::string::npos : text.find(path_); at != std::string::npos;
       at = text.find(path_, at + shown.size())) {
    text.replace(at, path_.size(), shown);
  }
  return error;
}

void Staging::swap(Staging& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(final_path_, other.final_path_);
  std::swap(kind_, other.kind_);
  std::swap(overwrite_, other.overwrite_);
  std::swap(fd_, other.fd_);
}

Staging::~Staging() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace graphlane::graphfmt
