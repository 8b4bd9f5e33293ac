#include "iomgr/admin/stub_copies.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <set>
#include <utility>

#include "iomgr/admin/orphans.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/files/tree.h"
#include "iomgr/base/sys.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {

Outcome<StubCounts> StubCounts::take(const Volume& volume) {
  const TreePlace top{.directory_fd = volume.root_fd(), .path = ".", .shown = volume.root()};
  StubCounts counts;
  std::set<std::pair<dev_t, ino_t>> seen;
  const TreeVisitor visitor{
      .enter = [&](const TreeEntry& entry) -> Outcome<void> {
        const struct stat& info = entry.info;
        if (!S_ISREG(info.st_mode) || info.st_size != kStubSize) return {};
        if (!seen.insert({info.st_dev, info.st_ino}).second) return {};
        // Opened by sys:: as in base/reopen.h, because of ThreadSanitizer.
        const Fd fd = open_regular(entry.parent_fd, entry.name, O_RDONLY);
        Layout layout;
        const Result<StubVerdict> verdict = inspect_stub(fd.get(), &layout);
        if (verdict && *verdict == StubVerdict::kStub &&
            verify_parts(volume, fd.get(), layout, "")) {
          counts.counts_[layout.file_id.bytes] += 1;
        }
        return {};
      },
      .closed = [](const TreeEntry&, const Error&) -> Outcome<void> { return {}; },
      .wants =
          [](const TreeEntry& entry) {
            // its entries own nothing
            return entry.path != kControlDirectory && entry.path != kLostAndFound;
          }};
  if (Outcome<void> walked = walk_tree(top, visitor); !walked) return walked.error();
  return counts;
}

uint32_t StubCounts::of(const Uuid& file_id) const {
  const auto found = counts_.find(file_id.bytes);
  return found == counts_.end() ? 0 : found->second;
}

}  // namespace graphlane
