#include "iomgr/admin/check.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>

#include "iomgr/admin/kind_change.h"
#include "iomgr/admin/relocate.h"
#include "iomgr/admin/scrub.h"
#include "iomgr/admin/stub_copies.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/file_kind.h"
#include "iomgr/base/files/open_below.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/base/files/tree.h"
#include "iomgr/base/mutex.h"
#include "iomgr/base/parallel_for.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/base/size.h"
#include "iomgr/volume/parts/interrupted_chown.h"
#include "iomgr/volume/parts/live_file.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {
namespace {

// A striped file, by the first of its names.
struct Found {
  std::string shown;
  dev_t device;
  ino_t inode;
  Layout layout;
  uint64_t bytes = 0;  // its size when found, also of an open file
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
    // Without the lock, because they may take hours.
    if (done) settle_kinds();
    if (done && options_.checksum) add_sums();
    if (done && options_.scrub) scrub();
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

  // Under the exclusive lock no process works below .graphlane/tmp.
  Outcome<void> check_leftovers() {
    const TreePlace tmp{.directory_fd = volume_.root_fd(),
                        .path = kStagingDirectory,
                        .shown = volume_.root() + "/" + kStagingDirectory};
    if (::faccessat(tmp.directory_fd, tmp.path.c_str(), F_OK, 0) != 0) return {};
    const Outcome<std::vector<TreeNode>> nodes = list_directory(tmp);
    if (!nodes) return nodes.error();
    for (const TreeNode& node : *nodes) {
      if (node.path.empty()) continue;
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
    const auto wants = [](const TreeEntry& entry) {
      return entry.path != kControlDirectory && entry.path != kLostAndFound;
    };
    if (options_.repair) {
      const TreeVisitor mend{
          .enter = [&](const TreeEntry& entry) -> Outcome<void> {
            if (S_ISREG(entry.info.st_mode)) mend_torn(entry);
            return {};
          },
          .closed = [](const TreeEntry&, const Error&) -> Outcome<void> { return {}; },
          .wants = wants};
      if (Outcome<void> walked = walk_tree(top, mend); !walked) return walked;
    }
    Outcome<StubCounts> counts = StubCounts::take(volume_);
    if (!counts) return counts.error();
    stub_counts_ = std::move(*counts);
    const TreeVisitor visitor{
        .enter = [&](const TreeEntry& entry) -> Outcome<void> {
          if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
          if (!entry.path.empty() && is_covered(entry)) {
            keep_orphans("what is mounted at {} may hide their stubs", entry.place().shown);
          }
          if (S_ISREG(entry.info.st_mode)) check_file(entry);
          return {};
        },
        // A user may have forbidden access on purpose. The rest must be checked nevertheless.
        .closed = [&](const TreeEntry& entry, const Error& error) -> Outcome<void> {
          if (entry.path.empty()) return error;
          problem("{}; not checked", error.text);
          keep_orphans("their stubs may be below {}, which cannot be read", entry.place().shown);
          return {};
        },
        .wants = wants};
    return walk_tree(top, visitor);
  }

  void settle_kinds() {
    for (const auto& [place, kind] : waiting_) {
      const FileKind now = kind == FileKind::kPlain ? FileKind::kStriped : FileKind::kPlain;
      const std::string line =
          fmt::format("{}: is {}, to be {}", place.shown, name_of(now), name_of(kind));
      if (!options_.repair) {
        report_.waiting.push_back(line);
        continue;
      }
      const Outcome<KindChange> changed =
          change_kind(volume_, place, kind, {.go_on = check_interrupt});
      if (!changed)
        report_.waiting.push_back(changed.error().text);
      else if (*changed == KindChange::kBusy)
        report_.waiting.push_back(line + "; is in use");
      else if (*changed == KindChange::kDone)
        repaired("{}: is {} now", place.shown, name_of(kind));
    }
  }

  // Whether a filesystem is mounted there, which may hide stubs.
  static bool is_covered(const TreeEntry& entry) {
    struct statx seen{};
    return ::statx(entry.parent_fd, entry.name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &seen) ==
               0 &&
           (seen.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  }

  void check_file(const TreeEntry& entry) {
    const Fd fd = open_regular(entry.parent_fd, entry.name, O_RDONLY);
    if (!fd && errno == ENOENT) return;  // removed since it was listed
    Layout layout;
    const Result<StubVerdict> verdict =
        fd ? inspect_stub(fd.get(), &layout) : Result<StubVerdict>(last_errno());
    const FileKind kind =
        verdict && *verdict == StubVerdict::kStub ? FileKind::kStriped : FileKind::kPlain;
    if (const auto wished = verdict ? wished_kind(fd.get()) : std::nullopt;
        wished && *wished != kind) {
      waiting_.push_back({entry.place(), *wished});
    }
    if (verdict && *verdict == StubVerdict::kNotAStub) {
      report_.plain_count += 1;
      return;
    }
    const TreePlace place = entry.place();
    const auto unknown = [&] { keep_orphans("{} may be the stub of one", place.shown); };
    if (!verdict) {
      problem("{}: cannot read: {}", place.shown, error_text(verdict.error().code));
      unknown();
    } else if (*verdict != StubVerdict::kStub) {
      problem("{}: {}", place.shown, describe(*verdict));
      unknown();
    } else if (Outcome<void> accepted = volume_.accept(layout, place.shown); !accepted) {
      problem("{}", accepted.error().text);
      if (layout.volume == volume_.uuid()) unknown();
    } else {
      check_striped(place, fd.get(), entry.info, layout);
    }
  }

  // The layouts before and after the one in the stub's first sector.
  std::vector<Layout> states_near(const Layout& layout) const {
    std::vector<Layout> states;
    Layout as_open = layout;
    as_open.state = FileState::kOpen;
    as_open.logical_size = kNoBound;
    const OpenSize open = stat_parts(volume_, as_open).open;
    for (const uint64_t size :
         {layout.logical_size, kNoBound, uint64_t{0}, open.bytes, open.promised_bytes}) {
      for (const FileState state : {FileState::kOpen, FileState::kClosed}) {
        for (const uint32_t generation :
             {layout.generation, layout.generation - 1, layout.generation + 1}) {
          for (const bool is_new : {false, true}) {
            Layout other = layout;
            other.logical_size = size;
            other.state = state;
            other.generation = generation;
            other.is_new = is_new;
            states.push_back(other);
          }
        }
      }
    }
    return states;
  }

  // Mends a stub that was written by half in a crash: both halves belong to this file, so the file
  // is intact in either state. Other damage does not match the checksum of the other state.
  void mend_torn(const TreeEntry& entry) {
    const struct stat& info = entry.info;
    if (info.st_size != kStubSize) return;
    const Fd stub = open_regular(entry.parent_fd, entry.name, O_RDWR);
    StubBytes bytes;
    Layout layout;
    if (!stub ||
        inspect_stub(stub.get(), &layout).value_or(StubVerdict::kNotAStub) !=
            StubVerdict::kBadChecksum ||
        !lock_to_change(stub.get(), F_WRLCK) ||
        pread_full(stub.get(), bytes.data(), bytes.size(), 0).value_or(0) != bytes.size() ||
        decode_fields(bytes, &layout) != StubVerdict::kStub || !volume_.accept(layout, "") ||
        !verify_parts(volume_, stub.get(), layout, "")) {
      return;
    }
    for (const Layout& other : states_near(layout)) {
      const StubBytes whole = encode_stub(other);
      if (std::equal(bytes.begin() + kStubSectorSize, bytes.end(),
                     whole.begin() + kStubSectorSize)) {
        if (rewrite_stub(stub.get(), layout) && ::fsync(stub.get()) == 0) {
          repaired("{}: was written half, is whole now", entry.place().shown);
        }
        return;
      }
    }
  }

  void check_striped(const TreePlace& place, int stub_fd, const struct stat& info,
                     const Layout& layout) {
    // The user must decide, because the file was copied or restored. Until then it is not touched.
    Outcome<void> own = verify_parts(volume_, stub_fd, layout, place.shown);
    if (!own && options_.repair && may_finish_chown(place, stub_fd, layout)) {
      own = verify_parts(volume_, stub_fd, layout, place.shown);
    }
    if (!own && own.error().code == EIO) {
      claimed_.insert(layout.file_id.bytes);
      return problem("{}", with_remedy(own.error().text, place));
    }
    const auto [known, is_new] = found_.try_emplace(
        layout.file_id.bytes,
        Found{place.shown, info.st_dev, info.st_ino, layout, layout.logical_size});
    if (!is_new) {  // another name of the same inode is valid
      if (known->second.inode != info.st_ino || known->second.device != info.st_dev) {
        problem("{}: copy of the stub {}: both name the same parts", place.shown,
                known->second.shown);
      }
      return;
    }
    report_.striped_count += 1;
    if (own && layout.format > kStubFormatUnbound) {
      stubs_.emplace(layout.identity.inode, layout.identity.born);
    }
    if (options_.repair && own) clear_removed(layout);
    if (is_being_changed(stub_fd)) {
      known->second.bytes = current_layout(volume_, layout).logical_size;
      report_.bytes += known->second.bytes;
      return;
    }
    const bool mend = options_.repair && own;
    if (own) check_rights(place, stub_fd, mend, layout);
    if (layout.state == FileState::kOpen) return check_open(place, mend, &known->second);
    report_.bytes += layout.logical_size;
    for (uint32_t d = 0; d < volume_.device_count(); ++d) check_part(place, mend, layout, d);
  }

  // Whether an interrupted chown was finished.
  bool may_finish_chown(const TreePlace& place, int stub_fd, const Layout& layout) {
    const Result<bool> done =
        finish_chown(volume_.device_roots(), layout, stub_fd, volume_.format());
    if (!done || !*done) return false;
    repaired("{}: its parts have the file's owner now: a chown was interrupted", place.shown);
    return true;
  }

  // Without a proof the owner is not changed: a forged stub would get what it names.
  std::string with_remedy(const std::string& text, const TreePlace& place) const {
    if (text.find("does not own the part") == std::string::npos) return text;
    if (!options_.repair) {
      return fmt::format("{} (if a chown was interrupted: check --repair)", text);
    }
    return fmt::format(
        "{} (that it is the file's is not proven; if you are sure: chown --reference={} PART)",
        text, place.shown);
  }

  // Parts have the mode and the group of their stub. They differ where a chmod was interrupted, or
  // was made in the volume's directory by a program without the library.
  void check_rights(const TreePlace& place, int stub_fd, bool mend, const Layout& layout) {
    struct stat stub, info;
    for (uint32_t d = 0; d < volume_.device_count(); ++d) {
      const PartOf of = part_of(root_fd(d), layout);
      const Fd part = find_part(of.root_fd, of.file_id);
      if (!part || ::fstat(part.get(), &info) != 0 || ::fstat(stub_fd, &stub) != 0 ||
          !S_ISREG(info.st_mode)) {
        continue;
      }
      const mode_t mode = stub.st_mode & 0777;
      const std::string shown = volume_.part_path(d, layout.file_id);
      if ((info.st_mode & 07777) == mode && info.st_gid == stub.st_gid) {
        check_rights_of_sums(place, part.get(), of, mend, shown);
        continue;
      }
      if (!mend) {
        problem("{}: part {} has mode {:o} and group {}, and the file {:o} and {}", place.shown,
                shown, info.st_mode & 07777, info.st_gid, mode, stub.st_gid);
      } else if ((info.st_gid != stub.st_gid && ::fchownat(part.get(), "", static_cast<uid_t>(-1),
                                                           stub.st_gid, AT_EMPTY_PATH) != 0) ||
                 ::chmod(ProcPath(part.get()).c_str(), mode) != 0 ||
                 share_part_access(part.get(), of) != 0) {
        problem("{}: part {}: cannot give it the file's mode and group: {}", place.shown, shown,
                error_text(errno));
      } else {
        repaired("{}: part {} has the file's mode and group now", place.shown, shown);
      }
    }
  }

  // The `.sum` has its part's rights; without them the part cannot be verified.
  void check_rights_of_sums(const TreePlace& place, int part_fd, const PartOf& of, bool mend,
                            const std::string& shown) {
    const Fd sums(open_below(of.root_fd, PartSumName(of.file_id).c_str(), O_PATH));
    struct stat part, info;
    if (!sums || ::fstat(sums.get(), &info) != 0 || ::fstat(part_fd, &part) != 0 ||
        !S_ISREG(info.st_mode)) {
      return;
    }
    if (info.st_uid == part.st_uid && info.st_gid == part.st_gid &&
        (info.st_mode & 0777) == (part.st_mode & 0777)) {
      return;
    }
    if (!mend) {
      problem("{}: the checksums of part {} have another owner or mode", place.shown, shown);
    } else if (const int error = share_part_access(part_fd, of); error != 0) {
      problem("{}: the checksums of part {}: cannot give them its owner and mode: {}", place.shown,
              shown, std::strerror(error));
    } else {
      repaired("{}: the checksums of part {} have its owner and mode now", place.shown, shown);
    }
  }

  // Clears the removal mark: a power failure has restored the name, so the file exists.
  void clear_removed(const Layout& layout) const {
    for (uint32_t d = 0; d < volume_.device_count(); ++d) {
      const PartOf part = part_of(root_fd(d), layout);
      const Fd fd = find_part(part.root_fd, part.file_id);
      PartRecord record;
      if (!fd ||
          read_part_record(fd.get(), part, &record).value_or(RecordVerdict::kNone) !=
              RecordVerdict::kRecord ||
          (record.flags & PartRecord::kRemoved) == 0) {
        continue;
      }
      record.flags &= static_cast<uint8_t>(~PartRecord::kRemoved);
      (void)write_part_record(fd.get(), part, record);
    }
  }

  // The size of a part, or an errno.
  Result<uint64_t> part_size(const Layout& layout, uint32_t d) const {
    struct stat info;
    if (::fstatat(root_fd(d), PartName(layout.file_id).c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return last_errno();
    }
    if (!S_ISREG(info.st_mode)) return Errno{kNotRegular};
    return static_cast<uint64_t>(info.st_size);
  }

  const char* part_error_text(const Layout& layout, uint32_t d, int code) const {
    return opening_error_text(code, root_fd(d), PartName(layout.file_id).c_str());
  }

  void check_part(const TreePlace& place, bool mend, const Layout& layout, uint32_t d) {
    const std::string part = volume_.part_path(d, layout.file_id);
    const uint64_t expected = layout.map().part_size(d, layout.logical_size);
    const Result<uint64_t> size = part_size(layout, d);
    if (!size && size.error().code == ENOENT) {
      problem("{}: part {} is missing", place.shown, part);
    } else if (!size) {
      problem("{}: part {}: {}", place.shown, part, part_error_text(layout, d, size.error().code));
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
      return problem("{}: part {}: cannot set its size: {}", place.shown, path, error_text(errno));
    }
    repaired("{}: part {} has {} bytes now", place.shown, path, size);
  }

  // Opens the file for changes, so that no other process changes it.
  Outcome<std::shared_ptr<LiveFile>> take(const TreePlace& place, const Layout& layout) const {
    Fd stub = only_regular(open_place(place, O_RDWR | kNoWait));
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

  // Handles a file left open by a dead writer, or by one without a mount. The parts determine its
  // size.
  void check_open(const TreePlace& place, bool mend, Found* found) {
    const Layout& layout = found->layout;
    for (uint32_t d = 0; d < volume_.device_count(); ++d) {
      const Result<uint64_t> size = part_size(layout, d);
      // The parts belong to this stub, so a missing one was never synced.
      if (!size && !(layout.is_new && size.error().code == ENOENT)) {
        return problem("{}: was never closed, and part {}: {}", place.shown,
                       volume_.part_path(d, layout.file_id),
                       part_error_text(layout, d, size.error().code));
      }
    }
    const OpenSize open = stat_parts(volume_, layout).open;
    const uint64_t size = open.bytes;
    report_.bytes += size;
    found->bytes = size;
    if (open.is_damaged()) {
      return problem("{}", damaged_error(volume_, layout, place.shown, open).text);
    }
    if (!mend) {
      report_.open.push_back(
          fmt::format("{}: not closed; its parts make {}", place.shown, format_size(size)));
      return;
    }
    if (Outcome<void> closed = close_file(place, layout); !closed) {
      return problem("{}", closed.error().text);
    }
    found->layout.logical_size = size;
    found->layout.state = FileState::kClosed;
    repaired("{}: closed with {}", place.shown, format_size(size));
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
      if (Outcome<void> ended = check_relocate_ended(volume_, d); !ended) {
        problem("{}", ended.error().text);
      }
      const TreePlace parts{.directory_fd = root_fd(d),
                            .path = "parts",
                            .shown = volume_.devices()[d].root + "/parts"};
      const TreeVisitor visitor{
          .enter = [&](const TreeEntry& entry) -> Outcome<void> {
            check_stray(d, entry);
            return {};
          },
          .closed = [&](const TreeEntry&, const Error& error) -> Outcome<void> {
            problem("{}", error.text);
            return {};
          }};
      if (Outcome<void> walked = walk_tree(parts, visitor); !walked) {
        problem("{}", walked.error().text);
      }
    }
    return check_orphans();
  }

  static bool is_directory_of_parts(const TreeEntry& node) {
    const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    return S_ISDIR(node.info.st_mode) &&
           (node.path.empty() ||
            (node.path.size() == 2 && is_hex(node.path[0]) && is_hex(node.path[1])));
  }

  void check_stray(uint32_t d, const TreeEntry& entry) {
    if (is_directory_of_parts(entry)) return;
    const std::string_view name = std::string_view(entry.path).substr(entry.path.rfind('/') + 1);
    const auto id = Uuid::parse(name);
    const bool is_part = id && S_ISREG(entry.info.st_mode) &&
                         ("parts/" + entry.path).starts_with(PartName(*id).c_str());
    if (!is_part) {
      problem("{}: is no part; left alone", entry.place().shown);
      return;
    }
    // Its stub was moved during the check.
    if (found_.contains(id->bytes) || claimed_.contains(id->bytes) || stub_counts_.of(*id) > 0) {
      return;
    }
    Orphan& orphan = orphans_[id->bytes];
    if (orphan.part_count == 0) orphan = {.file_id = *id, .shown = entry.place().shown};
    const Fd part(::openat(entry.parent_fd, entry.name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (part) add_part(volume_, d, part.get(), &orphan);
  }

  Outcome<void> check_orphans() {
    LostAndFound lost(volume_);
    Outcome<void> known = lost.read();
    if (!known) problem("{}", known.error().text);
    for (auto& [id, orphan] : orphans_) {
      if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
      orphan.since_seconds = lost.since(orphan.file_id);
      if (is_left_over(orphan)) {
        if (!options_.repair) {
          problem(
              "{}: left by an import or a removal that was killed, with {} others ({}); --repair "
              "removes them",
              orphan.shown, orphan.part_count - 1, format_size(orphan.bytes));
        } else if (remove_left_over(orphan)) {
          if (Outcome<void> removed = lost.remove(orphan.file_id); !removed) {
            problem("{}", removed.error().text);
          }
        }
        continue;
      }
      if (options_.delete_orphans.contains(id) && delete_orphan(orphan)) {
        if (Outcome<void> removed = lost.remove(orphan.file_id); !removed) {
          problem("{}", removed.error().text);
        }
        continue;
      }
      if (orphan.since_seconds == 0) note_orphan(orphan, known ? &lost : nullptr);
      report_.orphans.push_back(orphan);
    }
    if (!known || !options_.repair) return {};
    const auto entries = lost.entries();  // a copy, because entries are removed in the loop
    for (const auto& [id, since] : entries) {
      const Uuid file_id{id};
      if (orphans_.contains(id)) continue;
      // Its stub has returned, or its parts were deleted.
      if (Outcome<void> removed = lost.remove(file_id); !removed) {
        problem("{}", removed.error().text);
      } else {
        repaired("{}/{}/{}: removed, is no orphan any more", volume_.root(), kLostAndFound,
                 UuidText(file_id).view());
      }
    }
    return {};
  }

  // True also if its only stub exists and has other parts: a killed restripe left these.
  bool is_left_over(const Orphan& orphan) const {
    return orphan.is_left_over() ||
           (orphan.is_bound_alike && stubs_.contains({orphan.stub.inode, orphan.stub.born}));
  }

  bool remove_left_over(const Orphan& orphan) {
    if (Outcome<void> removed = remove_parts(volume_, orphan.file_id); !removed) {
      problem("{}", removed.error().text);
      return false;
    }
    repaired("{}: removed {} ({}) that a killed import or removal left",
             UuidText(orphan.file_id).view(), counted(orphan.part_count, "part"),
             format_size(orphan.bytes));
    return true;
  }

  bool delete_orphan(const Orphan& orphan) {
    if (!report_.orphans_kept.empty()) return false;
    if (Outcome<void> removed = remove_parts(volume_, orphan.file_id); !removed) {
      problem("{}", removed.error().text);
      return false;
    }
    repaired("{}: deleted {} ({}) that no stub named", UuidText(orphan.file_id).view(),
             counted(orphan.part_count, "part"), format_size(orphan.bytes));
    return true;
  }

  void note_orphan(Orphan& orphan, LostAndFound* lost) {
    if (options_.repair && lost != nullptr) {
      if (Outcome<void> added = lost->add(orphan); !added) return problem("{}", added.error().text);
      orphan.since_seconds = lost->since(orphan.file_id);
      return repaired("{}/{}/{}: {} {} ({}) that no stub names", volume_.root(), kLostAndFound,
                      UuidText(orphan.file_id).view(), orphan.is_readable() ? "shows" : "notes",
                      counted(orphan.part_count, "part"), format_size(orphan.bytes));
    }
    problem(
        "{}: no stub names this part, nor {} others of the file ({}); --repair notes it in {}, and "
        "deletes nothing",
        orphan.shown, orphan.part_count - 1, format_size(orphan.bytes), kLostAndFound);
  }

  template <class... Args>
  void keep_orphans(fmt::format_string<Args...> format, Args&&... args) {
    if (report_.orphans_kept.empty()) {
      report_.orphans_kept = fmt::format(format, std::forward<Args>(args)...);
    }
  }

  void scrub() {
    uint64_t total = 0;
    for (const auto& [id, found] : found_) total += found.bytes;
    Progress progress("scrub", total);
    ScrubState state(volume_, options_.resume);
    std::set<std::string> told;  // a part's problems may be found again after a resumption
    const auto tell = [&](const std::string& problem) {
      if (told.insert(problem).second) report_.problems.push_back(problem);
    };
    for (const std::string& problem : state.problems()) tell(problem);
    Mutex mu;
    parallel_for(volume_.device_count(), [&](uint32_t d) {
      const ScrubState::Place begin = state.place(d);
      Pace pace(options_.rate_bytes_per_second);
      for (const auto& [id, found] : found_) {
        if (!check_interrupt()) return;
        if (id < begin.file_id) {
          progress.add(found.layout.map().part_size(d, found.bytes));
          continue;
        }
        const ScrubPace how{.pace = &pace,
                            .state = &state,
                            .from_part_offset = id == begin.file_id ? begin.part_offset : 0};
        state.reached(d, {.file_id = id, .part_offset = how.from_part_offset});
        const PartScrub part =
            scrub_part(volume_, {.shown = found.shown, .layout = found.layout}, d, &progress, how);
        MutexLock lock(mu);
        for (const std::string& problem : part.problems) tell(problem);
        report_.scrubbed.verified += part.blocks.verified;
        report_.scrubbed.unverified += part.blocks.unverified;
        report_.scrubbed.failed += part.blocks.failed;
        if (!part.has_sums) report_.without_sums.insert(found.shown);
      }
    });
    if (check_interrupt()) {
      state.finish();
    } else {
      state.save();
    }
  }

  // One file after the other. A run that was interrupted or killed is continued, also within a file.
  void add_sums() {
    uint64_t total = 0;
    for (const auto& [id, found] : found_) total += found.bytes;
    Progress progress("checksum", total);
    for (const auto& [id, found] : found_) {
      if (!check_interrupt()) return;
      std::atomic<uint64_t> summed{0};
      SumWork work{.bytes_per_second = options_.rate_bytes_per_second,
                   .summed = [&](uint64_t bytes) {
                     progress.add(bytes);
                     summed += bytes;
                   }};
      if (Outcome<bool> added = add_sums_of(found, std::move(work)); !added && check_interrupt()) {
        problem("{}", added.error().text);
      } else if (added && *added) {
        repaired("{}: has checksums now", found.shown);
      }
      if (check_interrupt()) progress.add(found.bytes - std::min(found.bytes, summed.load()));
    }
  }

  // Whether checksums were added.
  Outcome<bool> add_sums_of(const Found& found, SumWork work) {
    const std::string_view below = std::string_view(found.shown).substr(volume_.root().size() + 1);
    const TreePlace place{
        .directory_fd = volume_.root_fd(), .path = std::string(below), .shown = found.shown};
    Fd stub = only_regular(open_place(place, O_RDWR | kNoWait));
    if (!stub) return place.error(errno, "cannot give it checksums");
    auto live = LiveFile::open(volume_, found.layout, std::move(stub), found.shown);
    if (!live) return live.error();
    (*live)->give_way();
    if (Result<void> wanted = (*live)->want_all_sums(std::move(work)); !wanted) {
      return place.error(wanted.error().code, "cannot give it checksums");
    }
    if (!(*live)->needs_close()) return false;
    const uint64_t change_count = (*live)->change_count();
    Result<void> done = (*live)->sync(/*data_only=*/true);
    if (done) done = (*live)->close(change_count);
    if (done) return true;
    if (done.error().code == EAGAIN) {
      return place.error(EBUSY,
                         "a program wants to write it: the next check goes on with its checksums");
    }
    return place.error(done.error().code, "cannot give it checksums");
  }

  const Volume& volume_;
  const CheckOptions& options_;
  // Files that wait for this kind.
  std::vector<std::pair<TreePlace, FileKind>> waiting_;
  CheckReport report_;
  StubCounts stub_counts_;
  std::map<std::array<uint8_t, 16>, Found> found_;     // by file id
  std::map<std::array<uint8_t, 16>, Orphan> orphans_;  // by file id
  // inode and birth time of stubs that own their parts
  std::set<std::pair<uint64_t, int64_t>> stubs_;
  std::set<std::array<uint8_t, 16>> claimed_;  // files named by a stub that does not own them
};

}  // namespace

Outcome<CheckReport> check_volume(const Volume& volume, const CheckOptions& options) {
  return Check(volume, options).run();
}

}  // namespace graphlane
