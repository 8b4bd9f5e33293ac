#include "fuse/coherence/kind_settler.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <system_error>

#include "fuse/ops/filesystem.h"
#include "iomgr/admin/kind_change.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/base/process/log.h"

namespace graphlane::fuse {
namespace {

// A copying tool may rename a file again, or set its times, just after the rename.
constexpr auto kFirstPause = std::chrono::milliseconds(100);
constexpr auto kLongestPause = std::chrono::seconds(5);
// A copy that came to nothing is not made again before that many times its duration.
constexpr int kPausePerCopy = 10;
constexpr auto kStopTime = std::chrono::seconds(2);
// Each holds a descriptor. Further ones are marked only.
constexpr size_t kWaitingFilesMax = 1024;

// Its path, if it has exactly one name, as the daemon's root sees it.
std::string path_behind(int fd) {
  char text[PATH_MAX];
  const ssize_t length = ::readlink(ProcPath(fd).c_str(), text, sizeof text);
  return length > 0 && length < PATH_MAX ? std::string(text, static_cast<size_t>(length)) : "";
}

}  // namespace

void KindSettler::start() {
  if (fs_.volume->policy().globs.empty() || fs_.options.read_only) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {  // files stay marked
  }
}

void KindSettler::stop() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    deadline_ = Clock::now() + kStopTime;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  const MutexLock lock(mu_);
  if (!waiting_.empty()) {
    log_line("{}: {} renamed files wait for the kind of their name (graphlane check --repair)",
             fs_.volume->root(), waiting_.size());
  }
  waiting_.clear();
}

void KindSettler::renamed(int directory_fd, const char* name, const char* old_name) {
  const StripePolicy& policy = fs_.volume->policy();
  if (policy.globs.empty()) return;
  const bool said = policy.wants_new(old_name), says = policy.wants_new(name);
  if (!said && !says) return;
  Fd fd(::openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) return;
  const StubView view = StubCache().look(fd.get(), st);
  if (!view.striped() && !view.plain()) return;
  const FileKind now = view.striped() ? FileKind::kStriped : FileKind::kPlain;
  const std::optional<FileKind> wished = kind_by_rename(now, said, says);
  if (!wished && said == says) return;
  // Without attributes the file is only queued.
  (void)wish_kind(fd.get(), wished);
  if (wished) add(std::move(fd), *wished);
}

void KindSettler::closed(int fd) {
  if (fs_.volume->policy().globs.empty()) return;
  if (const auto wished = wished_kind(fd)) add(reopen(fd, O_PATH), *wished);
}

void KindSettler::add(Fd fd, FileKind kind) {
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0 || !thread_.joinable()) return;
  const MutexLock lock(mu_);
  const Clock::time_point due = Clock::now() + kFirstPause;
  const auto known = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& file) {
    return file.device == st.st_dev && file.inode == st.st_ino;
  });
  if (known != waiting_.end()) {
    known->kind = kind;
    known->due = due;
    known->pause = kFirstPause;
  } else if (waiting_.size() < kWaitingFilesMax) {
    waiting_.push_back({std::move(fd), st.st_dev, st.st_ino, kind, due, kFirstPause});
  }
  changed_.notify_one();
}

void KindSettler::run() {
  MutexLock lock(mu_);
  std::vector<Waiting> left;  // not changed before the end
  for (;;) {
    const auto next =
        std::min_element(waiting_.begin(), waiting_.end(),
                         [](const Waiting& a, const Waiting& b) { return a.due < b.due; });
    if (stopping_ && (next == waiting_.end() || Clock::now() >= deadline_)) break;
    if (next == waiting_.end()) {
      changed_.wait(mu_);
      continue;
    }
    if (!stopping_ && next->due > Clock::now()) {
      changed_.wait_until(mu_, next->due);
      continue;
    }
    Waiting file = std::move(*next);
    waiting_.erase(next);
    mu_.unlock();
    const Clock::time_point begin = Clock::now();
    const Tried tried = settle(file);
    const Clock::time_point end = Clock::now();
    mu_.lock();
    if (tried == Tried::kDone) continue;
    file.due = end + std::max<Clock::duration>(file.pause, kPausePerCopy * (end - begin));
    file.pause = std::min<std::chrono::milliseconds>(2 * file.pause, kLongestPause);
    (stopping_ ? left : waiting_).push_back(std::move(file));
  }
  std::move(left.begin(), left.end(), std::back_inserter(waiting_));
}

KindSettler::Tried KindSettler::settle(const Waiting& file) {
  struct stat st, named;
  const std::string root = path_behind(fs_.volume->root_fd()), path = path_behind(file.fd.get());
  if (::fstat(file.fd.get(), &st) != 0 || st.st_nlink == 0) return Tried::kDone;
  if (!path.starts_with(root + "/")) return Tried::kDone;
  const TreePlace place{
      .directory_fd = fs_.volume->root_fd(), .path = path.substr(root.size() + 1), .shown = path};
  if (::fstatat(place.directory_fd, place.path.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      named.st_ino != st.st_ino || named.st_dev != st.st_dev) {
    return Tried::kLater;  // just renamed
  }
  const Outcome<KindChange> changed = change_kind(*fs_.volume, place, file.kind,
                                                  {.go_on = [this]() -> Outcome<void> {
                                                     const MutexLock lock(mu_);
                                                     if (!stopping_ || Clock::now() < deadline_)
                                                       return {};
                                                     return make_error(EBUSY, "the mount ends");
                                                   },
                                                   .exchanged = [&] { look_up_again(place); }});
  if (!changed) {
    log_line(changed.error().text);
    return Tried::kDone;
  }
  return *changed == KindChange::kBusy ? Tried::kLater : Tried::kDone;
}

// The kernel still has the old inode for the name. (A request that is under way with it is refused once
// it has lost its name: is_replaced().)
void KindSettler::look_up_again(const TreePlace& place) {
  const std::filesystem::path path(place.path);
  const std::string above = path.parent_path().string(), name = path.filename().string();
  struct stat st;
  if (::fstatat(place.directory_fd, above.empty() ? "." : above.c_str(), &st, 0) != 0) return;
  Inode* parent = fs_.inodes.find({.device = st.st_dev, .number = st.st_ino});
  const fuse_ino_t nodeid = parent != nullptr ? parent->nodeid : FUSE_ROOT_ID;
  if (parent == nullptr && !above.empty()) return;  // the kernel does not know the folder
  (void)::fuse_lowlevel_notify_inval_entry(fs_.session, nodeid, name.c_str(), name.size());
  if (parent != nullptr) fs_.inodes.forget(nodeid, 1);
}

}  // namespace graphlane::fuse
