#include "iomgr/admin/orphans.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "iomgr/base/files/atomic_file.h"
#include "iomgr/base/files/tree.h"
#include "iomgr/base/size.h"
#include "iomgr/volume/stub/part_record_io.h"

namespace graphlane {
namespace {

// "1 minute", "41 days": in the largest unit with a count of at least one.
std::string describe_seconds(int64_t seconds) {
  struct Unit {
    int64_t seconds;
    const char* name;
  };
  constexpr std::array<Unit, 3> kUnits{{{86400, "day"}, {3600, "hour"}, {60, "minute"}}};
  for (const Unit& unit : kUnits) {
    const int64_t count = seconds / unit.seconds;
    if (count > 0) return fmt::format("{} {}{}", count, unit.name, count == 1 ? "" : "s");
  }
  return "less than a minute";
}

std::string note_of(const Orphan& orphan) {
  return fmt::format(
      "No stub of this volume names the file {}.\nIt has {} parts with {} bytes, as {} is one.\n"
      "They do not say their layout, or not all the same, so they cannot be read as a file.\n",
      UuidText(orphan.file_id).view(), orphan.part_count, orphan.bytes, orphan.shown);
}

}  // namespace

std::string describe_age(const Orphan& orphan, int64_t now_seconds) {
  if (orphan.since_seconds == 0) return "new";
  return describe_seconds(std::max<int64_t>(0, now_seconds - orphan.since_seconds));
}

std::string describe(const std::vector<Orphan>& orphans, int64_t now_seconds) {
  uint64_t bytes = 0;
  const Orphan* oldest = nullptr;
  for (const Orphan& orphan : orphans) {
    bytes += orphan.bytes;
    if (orphan.since_seconds == 0) continue;
    if (oldest == nullptr || orphan.since_seconds < oldest->since_seconds) oldest = &orphan;
  }
  std::string text = fmt::format("{} orphan{}, {}", orphans.size(), orphans.size() == 1 ? "" : "s",
                                 format_size(bytes));
  if (oldest != nullptr) text += fmt::format(", oldest {}", describe_age(*oldest, now_seconds));
  return text;
}

Error LostAndFound::error(int code, std::string_view action) const {
  return os_error(code, volume_.root() + "/" + kLostAndFound, action);
}

void add_part(const Volume& volume, uint32_t device_index, int part_fd, Orphan* orphan) {
  struct stat st;
  if (::fstat(part_fd, &st) != 0) return;
  const bool is_first = orphan->part_count == 0;
  orphan->part_count += 1;
  orphan->bytes += static_cast<uint64_t>(st.st_size);
  if (is_first) {
    orphan->uid = st.st_uid;
    orphan->gid = st.st_gid;
  } else if (orphan->uid != st.st_uid) {
    orphan->is_ambiguous = true;
  }
  PartRecord record;
  const PartOf part{.root_fd = volume.devices()[device_index].root_fd.get(),
                    .volume = volume.uuid(),
                    .file_id = orphan->file_id};
  const Result<RecordVerdict> verdict = read_part_record(part_fd, part, &record);
  if (verdict.value_or(RecordVerdict::kBadField) != RecordVerdict::kRecord) {
    // A part exists before its record.
    if (verdict && *verdict == RecordVerdict::kNone && st.st_size == 0 && volume.format() > 1) {
      orphan->making_count += 1;
    }
    orphan->is_bound_alike = false;
    return;
  }
  if ((record.flags & PartRecord::kMaking) != 0) orphan->making_count += 1;
  if ((record.flags & PartRecord::kRemoved) != 0 && record.boot_tag != 0 &&
      record.boot_tag == boot_tag_now()) {
    orphan->is_removed = true;
  }
  if (is_first) orphan->stub = record.stub;
  if (record.stub != orphan->stub || record.stub.born == 0 || record.stub.inode == 0) {
    orphan->is_bound_alike = false;
  }
  const Layout layout{.volume = volume.uuid(),
                      .file_id = orphan->file_id,
                      .geometry = record.geometry,
                      .logical_size = kNoBound,
                      .state = FileState::kOpen};
  const bool fits =
      record.ordinal == device_index && record.geometry.device_count == volume.device_count();
  if (!fits || (orphan->layout && orphan->layout->geometry != layout.geometry)) {
    orphan->is_ambiguous = true;
  }
  orphan->layout = layout;
}

// If the volume is a whole filesystem, that may have a lost+found of its own. Entries with names of
// our form are then ours.
Outcome<Fd> LostAndFound::open_directory(bool make) const {
  struct stat root;
  if (::fstat(volume_.root_fd(), &root) != 0) return error(errno, "cannot read");
  if (make && ::mkdirat(volume_.root_fd(), kLostAndFound, 0700) == 0) {
    // Root gives it to the volume's owner, so that the owner sees the entries.
    if (::geteuid() == 0 && ::fchownat(volume_.root_fd(), kLostAndFound, root.st_uid, root.st_gid,
                                       AT_SYMLINK_NOFOLLOW) != 0) {
      return error(errno, "cannot set the owner");
    }
  }
  Fd directory(
      ::openat(volume_.root_fd(), kLostAndFound, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return error(errno, "cannot open");
  struct stat st;
  if (::fstat(directory.get(), &st) != 0) return error(errno, "cannot read");
  if ((st.st_mode & 0077) != 0 || (st.st_uid != root.st_uid && st.st_uid != 0)) {
    return make_error(EPERM,
                      "{}/{}: is not the volume's own: it must have its owner and the mode 0700",
                      volume_.root(), kLostAndFound);
  }
  return directory;
}

Outcome<void> LostAndFound::read() {
  entries_.clear();
  const Outcome<Fd> directory = open_directory(/*make=*/false);
  if (!directory) return directory.error().code == ENOENT ? Outcome<void>() : directory.error();
  const TreePlace place{
      .directory_fd = directory->get(), .path = ".", .shown = volume_.root() + "/" + kLostAndFound};
  const Outcome<std::vector<TreeNode>> nodes = list_directory(place);
  if (!nodes) return nodes.error();
  for (const TreeNode& node : *nodes) {
    const auto id = Uuid::parse(node.path);
    if (id && S_ISREG(node.info.st_mode)) {
      entries_[id->bytes] = std::max<int64_t>(1, node.info.st_mtim.tv_sec);
    }
  }
  return {};
}

int64_t LostAndFound::since(const Uuid& file_id) const {
  const auto found = entries_.find(file_id.bytes);
  return found == entries_.end() ? 0 : found->second;
}

Outcome<void> LostAndFound::add(const Orphan& orphan) {
  if (since(orphan.file_id) != 0) return {};
  const Outcome<Fd> directory = open_directory(/*make=*/true);
  if (!directory) return directory.error();
  const std::string name(UuidText(orphan.file_id).view());
  const std::string shown = fmt::format("{}/{}/{}", volume_.root(), kLostAndFound, name);
  const Outcome<void> made =
      orphan.is_readable()
          ? make_stub(directory->get(), name, orphan)
          : write_file_atomically(directory->get(), "./" + name, shown, note_of(orphan), 0400);
  if (!made) return made;
  struct stat st;
  entries_[orphan.file_id.bytes] =
      ::fstatat(directory->get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mtim.tv_sec
                                                                               : 1;
  return {};
}

// Writes the complete entry before it gets its name.
Outcome<void> LostAndFound::make_stub(int directory_fd, const std::string& name,
                                      const Orphan& orphan) const {
  const std::string temporary = fmt::format("{}.{}~", name, UuidText(Uuid::random()).view());
  const Fd stub(
      ::openat(directory_fd, temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!stub) return error(errno, "cannot make an entry");
  Layout layout = *orphan.layout;
  const Result<StubSeen> seen = identify_stub(stub.get());
  int failed = seen ? 0 : seen.error().code;
  if (seen) {
    layout.format = kStubFormat;
    layout.identity = seen->identity;
    if (Result<void> written = write_stub(stub.get(), layout); !written) {
      failed = written.error().code;
    }
  }
  const bool is_mine = orphan.uid == ::geteuid();
  if (failed == 0 && !is_mine && ::fchown(stub.get(), orphan.uid, orphan.gid) != 0) failed = errno;
  if (failed == 0 && ::fchmod(stub.get(), 0400) != 0) failed = errno;
  if (failed == 0 && ::fsync(stub.get()) != 0) failed = errno;
  if (failed == 0 && ::renameat(directory_fd, temporary.c_str(), directory_fd, name.c_str()) != 0) {
    failed = errno;
  }
  if (failed != 0) {
    ::unlinkat(directory_fd, temporary.c_str(), 0);
    return error(failed, "cannot make an entry");
  }
  return sync_directory(".", directory_fd);
}

Outcome<void> LostAndFound::remove(const Uuid& file_id) {
  if (since(file_id) == 0) return {};
  const Outcome<Fd> directory = open_directory(/*make=*/false);
  if (!directory) return directory.error();
  if (::unlinkat(directory->get(), UuidText(file_id).c_str(), 0) != 0 && errno != ENOENT) {
    return error(errno, "cannot remove an entry");
  }
  entries_.erase(file_id.bytes);
  return {};
}

}  // namespace graphlane
