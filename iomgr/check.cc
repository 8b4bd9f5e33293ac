#include "iomgr/check.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "iomgr/base/at_once.h"
#include "iomgr/base/file_io.h"
#include "iomgr/base/interrupt.h"
#include "iomgr/base/mutex.h"
#include "iomgr/base/progress.h"
#include "iomgr/base/regular_file.h"
#include "iomgr/live_file.h"
#include "iomgr/part_files.h"
#include "iomgr/parts.h"
#include "iomgr/stub_copies.h"
#include "iomgr/stub_lock.h"
#include "iomgr/tree.h"
#include "iomgr/volume_files.h"

namespace graphlane {
namespace {

constexpr uint64_t kScrubChunk = 4u << 20;

// A striped file that has been found, by its first name.
struct Found {
  std::string shown;
  dev_t device;
  ino_t inode;
  Layout layout;
};

class Check {
 public:
  Check(const Volume& volume, const CheckOptions& options) : volume_(volume), options_(options) {}

  Outcome<CheckReport> run() {
    Outcome<void> done;
    {
      const Outcome<VolumeLock> lock = VolumeLock::take(volume_, VolumeLock::kExclusive);
      if (!lock) return lock.error();
      done = check_leftovers();
      if (done) done = check_files();
      if (done) done = check_devices();
    }
    if (done && options_.scrub) scrub();  // may take hours: others may go on meanwhile
    if (done) done = check_interrupt();
    if (!done) report_.stopped = done.error();
    return std::move(report_);
  }

 private:
  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    report_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void repaired(fmt::format_string<Args...> format, Args&&... args) {
    report_.repaired.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  int root_fd(uint32_t device_index) const { return volume_.devices()[device_index].root_fd.get(); }

  // With the exclusive lock nobody is at work below .graphlane/tmp.
  Outcome<void> check_leftovers() {
    const TreePlace tmp{.directory_fd = volume_.root_fd(),
                        .path = kStagingDirectory,
                        .shown = volume_.root() + "/" + kStagingDirectory};
    if (::faccessat(tmp.directory_fd, tmp.path.c_str(), F_OK, 0) != 0) return {};
    const Outcome<std::vector<TreeNode>> nodes = list_tree(tmp);
    if (!nodes) return nodes.error();
    for (const TreeNode& node : *nodes) {
      if (node.path.empty() || node.path.find('/') != std::string::npos) continue;
      const TreePlace place = tmp.at(node.path);
      if (!options_.repair) {
        problem("{}: left by an import that died", place.shown);
      } else if (Outcome<void> removed = remove_volume_tree(volume_, place, true); !removed) {
        problem("{}", removed.error().text);
      } else {
        repaired("{}: removed what a dead import left", place.shown);
      }
    }
    return {};
  }

  Outcome<void> check_files() {
    const TreePlace top{.directory_fd = volume_.root_fd(), .path = ".", .shown = volume_.root()};
    Outcome<std::vector<TreeNode>> nodes = list_tree(top);
    if (!nodes) return nodes.error();
    std::erase_if(*nodes, [](const TreeNode& node) { return is_within(node.path, kControlDirectory); });
    for (const TreeNode& node : *nodes) {
      if (options_.repair && S_ISREG(node.info.st_mode)) mend_torn(top.at(node.path), node.info);
    }
    Outcome<StubCounts> counts = StubCounts::take(volume_);
    if (!counts) return counts.error();
    stub_counts_ = std::move(*counts);
    for (const TreeNode& node : *nodes) {
      if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
      if (options_.repair && !node.path.empty() && is_covered(top.at(node.path))) {
        cover_ = top.at(node.path).shown;
      }
      if (S_ISREG(node.info.st_mode)) check_file(top.at(node.path), node.info);
    }
    return {};
  }

  // Whether something is mounted there, which hides what stubs may lie below.
  static bool is_covered(const TreePlace& place) {
    struct statx seen {};
    return ::statx(place.directory_fd, place.path.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0,
                   &seen) == 0 &&
           (seen.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  }

  void check_file(const TreePlace& place, const struct stat& info) {
    const Fd fd = open_regular(place.directory_fd, place.path.c_str(), O_RDONLY);
    if (!fd && errno == ENOENT) return;  // gone since it was listed
    Layout layout;
    const Result<StubVerdict> verdict =
        fd ? inspect_stub(fd.get(), &layout) : Result<StubVerdict>(last_errno());
    if (!verdict) {
      problem("{}: cannot read: {}", place.shown, std::strerror(verdict.error().code));
      has_unknown_stub_ = true;
    } else if (*verdict == StubVerdict::kNotAStub) {
      report_.plain_count += 1;
    } else if (*verdict != StubVerdict::kStub) {
      problem("{}: {}", place.shown, describe(*verdict));
      has_unknown_stub_ = true;
    } else if (Outcome<void> accepted = volume_.accept(layout, place.shown); !accepted) {
      problem("{}", accepted.error().text);
      if (layout.volume == volume_.uuid()) has_unknown_stub_ = true;
    } else {
      check_striped(place, fd.get(), info, layout);
    }
  }

  // A stub of which a failing machine wrote half: both halves are of this file, so it is whole in
  // either state. Whoever damaged it otherwise has not hit the checksum of the other one.
  void mend_torn(const TreePlace& place, const struct stat& info) {
    if (info.st_size != kStubSize) return;
    const Fd stub = open_regular(place.directory_fd, place.path.c_str(), O_RDWR);
    StubBytes bytes;
    Layout layout;
    if (!stub || inspect_stub(stub.get(), &layout).value_or(StubVerdict::kNotAStub) !=
                     StubVerdict::kBadChecksum ||
        !lock_to_change(stub.get(), F_WRLCK) ||
        pread_full(stub.get(), bytes.data(), bytes.size(), 0).value_or(0) != bytes.size() ||
        decode_fields(bytes, &layout) != StubVerdict::kStub || !volume_.accept(layout, "") ||
        !may_give_access(volume_, layout, info)) {
      return;
    }
    for (const uint64_t size :
         {layout.logical_size, kNoBound, uint64_t{0}, stat_parts(volume_, layout).logical_size}) {
      for (const FileState state : {FileState::kOpen, FileState::kClosed}) {
        Layout other = layout;
        other.logical_size = size;
        other.state = state;
        const StubBytes whole = encode_stub(other);
        if (!std::equal(bytes.begin() + kStubSectorSize, bytes.end(), whole.begin() + kStubSectorSize)) {
          continue;
        }
        if (write_stub(stub.get(), layout) && ::fsync(stub.get()) == 0) {
          repaired("{}: was written half, is whole now", place.shown);
        }
        return;
      }
    }
  }

  void check_striped(const TreePlace& place, int stub_fd, const struct stat& info,
                     const Layout& layout) {
    const auto [known, is_new] =
        found_.try_emplace(layout.file_id.bytes,
                           Found{place.shown, info.st_dev, info.st_ino, layout});
    if (!is_new) {  // another name of the same inode is as it should be
      if (known->second.inode != info.st_ino || known->second.device != info.st_dev) {
        problem("{}: copy of the stub {}: both name the same parts; `graphlane rm` removes either "
                "alone, rm in a mount does not", place.shown, known->second.shown);
      }
      return;
    }
    report_.striped_count += 1;
    if (is_being_changed(stub_fd)) {
      report_.bytes += current_layout(volume_, layout).logical_size;
      return;
    }
    // Of two stubs that name the same parts, one may have the size that the file had before; and
    // anyone can write one.
    const bool mend = options_.repair && stub_counts_.of(layout.file_id) == 1 &&
                      may_give_access(volume_, layout, info);
    if (layout.state == FileState::kOpen) return check_open(place, mend, &known->second.layout);
    report_.bytes += layout.logical_size;
    for (uint32_t d = 0; d < volume_.device_count(); ++d) check_part(place, mend, layout, d);
  }

  // The size of a part, or an errno.
  Result<uint64_t> part_size(const Layout& layout, uint32_t d) const {
    struct stat info;
    if (::fstatat(root_fd(d), PartName(layout.file_id).c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return last_errno();
    }
    if (!S_ISREG(info.st_mode)) return Errno{EINVAL};
    return static_cast<uint64_t>(info.st_size);
  }

  void check_part(const TreePlace& place, bool mend, const Layout& layout, uint32_t d) {
    const std::string part = volume_.part_path(d, layout.file_id);
    const uint64_t expected = layout.map().part_size(d, layout.logical_size);
    const Result<uint64_t> size = part_size(layout, d);
    if (!size && size.error().code == ENOENT) {
      problem("{}: part {} is missing", place.shown, part);
    } else if (!size) {
      problem("{}: part {}: {}", place.shown, part, std::strerror(size.error().code));
    } else if (*size < expected) {
      problem("{}: part {} is short: {} bytes, expected {}", place.shown, part, *size, expected);
    } else if (*size > expected && !mend) {
      problem("{}: part {} is long: {} bytes, expected {}", place.shown, part, *size, expected);
    } else if (*size > expected) {
      cut_part(place, layout, d, expected);
    }
  }

  void cut_part(const TreePlace& place, const Layout& layout, uint32_t d, uint64_t size) {
    const std::string path = volume_.part_path(d, layout.file_id);
    const auto live = take(place, layout);
    if (!live) return problem("{}", live.error().text);
    const int part = (*live)->writable().parts().buffered(d);
    if (::ftruncate(part, static_cast<off_t>(size)) != 0 || ::fsync(part) != 0) {
      return problem("{}: part {}: cannot set its size: {}", place.shown, path,
                     std::strerror(errno));
    }
    repaired("{}: part {} has {} bytes now", place.shown, path, size);
  }

  // The file, changed by nobody but us from now on.
  Outcome<std::shared_ptr<LiveFile>> take(const TreePlace& place, const Layout& layout) const {
    Fd stub = open_regular(place.directory_fd, place.path.c_str(), O_RDWR);
    if (!stub) return place.error(errno, "cannot mend it");
    auto live = LiveFile::open(volume_, layout, std::move(stub), place.shown);
    if (!live) return live;
    Layout now;
    const Result<StubVerdict> verdict = inspect_stub((*live)->stub_fd(), &now);
    if (!verdict || *verdict != StubVerdict::kStub || now != layout) {
      return place.error(EBUSY, "changed while it was looked at");
    }
    return live;
  }

  // A writer died. What the parts hold is the file.
  void check_open(const TreePlace& place, bool mend, Layout* layout) {
    for (uint32_t d = 0; d < volume_.device_count(); ++d) {
      if (const Result<uint64_t> size = part_size(*layout, d); !size) {
        return problem("{}: was never closed, and part {}: {}", place.shown,
                       volume_.part_path(d, layout->file_id), std::strerror(size.error().code));
      }
    }
    const uint64_t size = current_layout(volume_, *layout).logical_size;
    report_.bytes += size;
    if (!mend) {
      return problem("{}: was never closed; its parts make {} bytes", place.shown, size);
    }
    if (Outcome<void> closed = close_file(place, *layout); !closed) {
      return problem("{}", closed.error().text);
    }
    layout->logical_size = size;
    layout->state = FileState::kClosed;
    repaired("{}: closed with {} bytes", place.shown, size);
  }

  Outcome<void> close_file(const TreePlace& place, const Layout& layout) const {
    const auto live = take(place, layout);
    if (!live) return live.error();
    const uint64_t change_count = (*live)->change_count();
    Result<void> done = (*live)->sync(/*data_only=*/true);
    if (done) done = (*live)->close(change_count);
    if (!done) return place.error(done.error().code, "cannot close it");
    return {};
  }

  Outcome<void> check_devices() {
    for (uint32_t d = 0; d < volume_.device_count(); ++d) {
      const TreePlace parts{.directory_fd = root_fd(d),
                            .path = "parts",
                            .shown = volume_.devices()[d].root + "/parts"};
      const Outcome<std::vector<TreeNode>> nodes = list_tree(parts);
      if (!nodes) {
        problem("{}", nodes.error().text);
        continue;
      }
      for (const TreeNode& node : *nodes) {
        if (!is_directory_of_parts(node)) check_stray(parts.at(node.path), node);
      }
    }
    return {};
  }

  static bool is_directory_of_parts(const TreeNode& node) {
    const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    return S_ISDIR(node.info.st_mode) &&
           (node.path.empty() ||
            (node.path.size() == 2 && is_hex(node.path[0]) && is_hex(node.path[1])));
  }

  void check_stray(const TreePlace& place, const TreeNode& node) {
    const size_t slash = node.path.rfind('/');
    const auto id = Uuid::parse(std::string_view(node.path).substr(slash + 1));
    const bool is_part =
        id && S_ISREG(node.info.st_mode) && "parts/" + node.path == PartName(*id).c_str();
    if (!is_part) {
      problem("{}: is no part; left alone", place.shown);
    } else if (found_.contains(id->bytes) || stub_counts_.of(*id) > 0) {
      return;  // the latter: its stub was moved while we looked
    } else if (!options_.repair) {
      problem("{}: no stub names this part ({} bytes)", place.shown, node.info.st_size);
    } else if (has_unknown_stub_) {
      problem("{}: no stub names this part ({} bytes); kept, a damaged stub may be its own",
              place.shown, node.info.st_size);
    } else if (!cover_.empty()) {
      problem("{}: no stub names this part ({} bytes); kept, what is mounted at {} may hide its own",
              place.shown, node.info.st_size, cover_);
    } else if (::unlinkat(place.directory_fd, place.path.c_str(), 0) != 0) {
      problem("{}: cannot remove: {}", place.shown, std::strerror(errno));
    } else {
      repaired("{}: removed, no stub named it ({} bytes)", place.shown, node.info.st_size);
      const std::string directory = place.path.substr(0, place.path.rfind('/'));
      (void)::unlinkat(place.directory_fd, directory.c_str(), AT_REMOVEDIR);  // when empty
    }
  }

  void scrub() {
    uint64_t total = 0;
    for (const auto& [id, found] : found_) total += found.layout.logical_size;
    Progress progress("scrub", total);
    Mutex mu;
    at_once(volume_.device_count(), [&](uint32_t d) {
      for (const auto& [id, found] : found_) {
        const Outcome<void> good = scrub_part(found, d, &progress);
        MutexLock lock(mu);
        if (!good) problem("{}", good.error().text);
      }
    });
  }

  Outcome<void> scrub_part(const Found& found, uint32_t d, Progress* progress) const {
    const std::string path = volume_.part_path(d, found.layout.file_id);
    const Fd part = open_regular(root_fd(d), PartName(found.layout.file_id).c_str(), O_RDONLY);
    if (!part) return {};  // told above, or removed meanwhile
    // What is in memory says nothing of the device.
    (void)::fdatasync(part.get());
    (void)::posix_fadvise(part.get(), 0, 0, POSIX_FADV_DONTNEED);
    std::vector<char> buffer(kScrubChunk);
    for (uint64_t offset = 0;;) {
      if (Outcome<void> go_on = check_interrupt(); !go_on) return {};
      const Result<size_t> got = pread_full(part.get(), buffer.data(), buffer.size(), offset);
      if (!got) {
        return make_error(got.error().code, "{}: part {}: cannot read between {} and {}: {}",
                          found.shown, path, offset, offset + buffer.size(),
                          std::strerror(got.error().code));
      }
      progress->add(*got);
      // What was read once does not push others out of the page cache.
      (void)::posix_fadvise(part.get(), static_cast<off_t>(offset), static_cast<off_t>(*got),
                            POSIX_FADV_DONTNEED);
      if (*got < buffer.size()) return {};
      offset += *got;
    }
  }

  const Volume& volume_;
  const CheckOptions& options_;
  CheckReport report_;
  StubCounts stub_counts_;
  std::map<std::array<uint8_t, 16>, Found> found_;  // by file id
  bool has_unknown_stub_ = false;                   // one that cannot say which parts are its own
  std::string cover_;                               // where something is mounted; if repairing
};

}  // namespace

Outcome<CheckReport> check_volume(const Volume& volume, const CheckOptions& options) {
  return Check(volume, options).run();
}

}  // namespace graphlane
