#include "iomgr/stub_copies.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <utility>

#include "iomgr/base/sys.h"
#include "iomgr/parts.h"
#include "iomgr/volume_files.h"

namespace graphlane {
namespace fs = std::filesystem;

Outcome<StubCounts> StubCounts::take(const Volume& volume) {
  StubCounts counts;
  std::set<std::pair<dev_t, ino_t>> seen;
  std::error_code error;
  fs::recursive_directory_iterator at(fmt::format("/proc/self/fd/{}", volume.root_fd()),
                                      fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::end(at); at.increment(error)) {
    if (at.depth() == 0 && at->path().filename() == kControlDirectory) {
      at.disable_recursion_pending();
    }
    struct stat st;
    if (::lstat(at->path().c_str(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != kStubSize) {
      continue;
    }
    if (!seen.insert({st.st_dev, st.st_ino}).second) continue;
    // By sys:: as in base/reopen.h: other threads' descriptors come and go meanwhile.
    const Fd fd(sys::openat(AT_FDCWD, at->path().c_str(),
                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    Layout layout;
    const Result<StubVerdict> verdict = inspect_stub(fd.get(), &layout);
    if (verdict && *verdict == StubVerdict::kStub && layout.volume == volume.uuid() &&
        may_give_access(volume, layout, st)) {
      counts.counts_[layout.file_id.bytes] += 1;
    }
  }
  if (error) return os_error(error.value(), volume.root(), "cannot look for copies of stubs");
  return counts;
}

uint32_t StubCounts::of(const Uuid& file_id) const {
  const auto found = counts_.find(file_id.bytes);
  return found == counts_.end() ? 0 : found->second;
}

Outcome<void> remove_orphans(const Volume& volume, const std::vector<Uuid>& file_ids) {
  if (file_ids.empty()) return {};
  const Outcome<StubCounts> counts = StubCounts::take(volume);
  if (!counts) return counts.error();
  Outcome<void> result;
  for (const Uuid& file_id : file_ids) {
    if (counts->of(file_id) > 0) continue;
    if (Outcome<void> removed = remove_parts(volume, file_id); !removed) result = removed;
  }
  return result;
}

}  // namespace graphlane
