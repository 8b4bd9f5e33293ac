#include "fuse/inode/stub_cache.h"

#include "fuse/inode/inode_table.h"
#include "iomgr/base/files/file_times.h"
#include "iomgr/volume/stub/stub_lock.h"

namespace graphlane::fuse {
namespace {

constexpr auto kFreshMax = std::chrono::seconds(1);  // longer than a clock's tick

// A stub to which something was appended is found at its open (ops/open.cc).
bool size_of_a_stub(const struct stat& st) {
  return S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= static_cast<off_t>(kStubSize);
}

StubView read_view(int path_fd, const struct stat& st) {
  StubView view;
  const Fd file = reopen_keeping_atime(path_fd, O_RDONLY);
  if (!file) {
    if (errno != EACCES && errno != EPERM) {
      view.error = errno;
    } else {
      view.unreadable = st.st_size == static_cast<off_t>(kStubSize);
    }
    return view;
  }
  const Result<StubVerdict> verdict =
      read_stub(file.get(), static_cast<uint64_t>(st.st_size), &view.layout);
  if (verdict) {
    view.verdict = *verdict;
  } else {
    view.error = verdict.error().code;
  }
  return view;
}

}  // namespace

StubView StubCache::look(int path_fd, const struct stat& st) {
  if (!size_of_a_stub(st)) return {};
  MutexLock lock(mu_);
  const bool unchanged = known_ && size_ == st.st_size && ctime_.tv_sec == st.st_ctim.tv_sec &&
                         ctime_.tv_nsec == st.st_ctim.tv_nsec;
  if (!unchanged) {
    view_ = read_view(path_fd, st);
    ctime_ = st.st_ctim;
    size_ = st.st_size;
    // Not cached on an error, nor while another change could have the same ctime.
    known_ = view_.error == 0 && !is_fresh(ctime_ns_of(st));
  }
  return view_;
}

std::shared_ptr<StripedFile> StubCache::opened(const Uuid& file_id) {
  MutexLock lock(mu_);
  std::shared_ptr<StripedFile> file = opened_.lock();
  return file && file->layout().file_id == file_id ? file : nullptr;
}

void StubCache::remember(const std::shared_ptr<StripedFile>& file) {
  MutexLock lock(mu_);
  opened_ = file;
}

std::shared_ptr<StripedFile> StubCache::share(const std::shared_ptr<StripedFile>& file) {
  MutexLock lock(mu_);
  std::shared_ptr<StripedFile> first = opened_.lock();
  if (first && first->layout().file_id == file->layout().file_id) return first;
  opened_ = file;
  return file;
}

bool StubCache::same_content(const Uuid& file_id, const struct stat& st, bool ours) {
  const int64_t ctime_ns = ctime_ns_of(st);
  Content now{.file_id = file_id, .mtime_ns = nanoseconds(st.st_mtim)};
  if (file_id == Uuid{}) {
    now.ctime_ns = ctime_ns;
    now.size = st.st_size;
  }
  MutexLock lock(mu_);
  const bool is_first = !content_;
  const bool as_before = content_ == now;
  const auto looked_at = std::chrono::steady_clock::now();
  if (!as_before) content_since_ = looked_at;
  // A ctime ahead of this machine's clock would look fresh too long, so kFreshMax limits it.
  const bool fresh = !ours && is_fresh(ctime_ns) && looked_at - content_since_ < kFreshMax;
  const bool same = is_first || (as_before && !content_may_have_changed_);
  content_may_have_changed_ = fresh && !(as_before && same);
  content_ = now;
  return same;
}

}  // namespace graphlane::fuse
