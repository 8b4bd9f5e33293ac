#include "iomgr/volume/parts/striped_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "iomgr/base/files/cold.h"
#include "iomgr/base/files/file_kind.h"
#include "iomgr/base/parallel_for.h"
#include "iomgr/volume/lost_and_found.h"
#include "iomgr/volume/parts/never_synced.h"
#include "iomgr/volume/stub/part_record_io.h"

namespace graphlane {
namespace {

// Brings the parts' names and inodes into memory. If the first are not there, or their lookup is slow
// (a disk needs some seeks for the directory and the inode), looks up all in parallel.
void look_up_parts(const Volume& volume, const Uuid& file_id) {
  constexpr std::chrono::milliseconds kFromMemory{1};
  const PartName name(file_id);
  const auto roots = volume.device_roots();
  const auto look = [&](uint32_t device_index) {
    struct stat st;
    (void)::fstatat(roots[device_index], name.c_str(), &st, AT_SYMLINK_NOFOLLOW);
  };
  bool cold = is_cold(roots[0], name.c_str());
  if (!cold) {
    const auto begin = std::chrono::steady_clock::now();
    look(0);
    cold = std::chrono::steady_clock::now() - begin >= kFromMemory;
  }
  if (cold) parallel_for(volume.device_count(), look);
}

// Whether a part is missing, or names no stub. `parts`: -1 for a missing one.
bool lacks_a_part(const Layout& layout, std::span<const int> parts, std::span<const int> roots) {
  for (uint32_t d = 0; d < parts.size(); ++d) {
    PartRecord record;
    if (parts[d] < 0) return true;
    const Result<RecordVerdict> verdict =
        read_part_record(parts[d], part_of(roots[d], layout), &record);
    if (verdict && (*verdict != RecordVerdict::kRecord || record.stub == StubIdentity{})) {
      return true;
    }
  }
  return false;
}

}  // namespace

Error describe_part_error(const Volume& volume, const Layout& layout, std::string_view name,
                          const PartError& error) {
  if (error.ownership == Ownership::kCopy || error.ownership == Ownership::kOldFormat) {
    return make_error(EIO, "{}: {}", name, describe(error.ownership));
  }
  const std::string part = volume.part_path(error.device_index, layout.file_id);
  if (error.ownership != Ownership::kOwned) {
    return make_error(EIO, "{}: {}: {}", name, part, describe(error.ownership));
  }
  if (error.size_found < error.size_expected) {
    return make_error(EIO, "{}: part {} has {} bytes, expected {}", name, part, error.size_found,
                      error.size_expected);
  }
  const int root_fd = volume.device_roots()[error.device_index];
  return make_error(error.code, "{}: part {}: {}", name, part,
                    opening_error_text(error.code, root_fd, PartName(layout.file_id).c_str()));
}

Outcome<std::shared_ptr<StripedFile>> StripedFile::open_for(const Volume& volume,
                                                            const Layout& layout,
                                                            std::string_view name, int flags,
                                                            const PartsOwner* owner) {
  const Outcome<void> accepted = volume.accept(layout, name);
  if (!accepted) return accepted.error();
  std::shared_ptr<StripedFile> file(new StripedFile());
  for (uint32_t d = 0; d < volume.device_count(); ++d) file->roots_[d] = volume.device_roots()[d];
  file->layout_ = layout;
  file->map_ = layout.map();
  file->name_ = name;
  file->set_size(layout.logical_size);
  look_up_parts(volume, layout.file_id);
  const Result<void, PartError> opened =
      file->parts_.open(volume.device_roots(), layout, flags, owner);
  if (!opened) return describe_part_error(volume, layout, name, opened.error());
  if (layout.state == FileState::kOpen) {
    const OpenSize open = file->look_at_open(layout);
    if (open.is_damaged()) return damaged_error(volume, layout, name, open);
  }
  return file;
}

// Looks again after a mismatch, because a chown changes the owners one after the other, and another
// process may begin to change a closed file.
Outcome<std::shared_ptr<StripedFile>> StripedFile::open(const Volume& volume, int stub_fd,
                                                        const Layout& layout, std::string_view name,
                                                        int flags) {
  constexpr std::chrono::milliseconds kPause{2};
  Layout now = layout;
  if ((flags & O_ACCMODE) != O_RDONLY && volume.format() == 1) {
    return make_error(EROFS, "{}: a volume of format 1 is read only (graphlane check --upgrade)",
                      name);
  }
  for (bool is_second = false;;) {
    const Result<StubSeen> seen = identify_stub(stub_fd);
    if (!seen) return os_error(seen.error().code, name, "cannot look at the stub");
    const bool is_lost = (flags & O_ACCMODE) == O_RDONLY &&
                         is_lost_and_found(volume.root_fd(), stub_fd, layout.file_id);
    const PartsOwner owner{
        .stub = *seen, .volume_format = volume.format(), .is_lost_and_found = is_lost};
    auto file = open_for(volume, now, name, flags, &owner);
    if (file || file.error().code != EIO) return file;
    if (now.state == FileState::kClosed && has_changed(stub_fd, &now)) {
      now = current_layout(volume, now);
      continue;
    }
    if (is_second) return file;
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;
    const int error =
        writes && now.is_new ? remake_parts(volume.device_roots(), now, stub_fd, owner) : 0;
    if (error != 0 && error != EIO) {
      return os_error(error, name, "cannot make its parts, of which a power failure left some");
    }
    std::this_thread::sleep_for(kPause);
    is_second = true;
  }
}

Outcome<std::shared_ptr<StripedFile>> StripedFile::open_new(const Volume& volume,
                                                            const Layout& layout,
                                                            std::string_view name) {
  return open_for(volume, layout, name, O_RDWR, nullptr);
}

// 0 or an errno.
int StripedFile::sync_part_of(uint32_t device_index, bool with_rights) const {
  const int fd = parts_.buffered(device_index);
  if (!with_rights) return ::fdatasync(fd) == 0 ? 0 : errno;
  return sync_part_rights(fd, part_of(roots_[device_index], layout_));
}

Result<void> StripedFile::sync(bool data_only) {
  Result<void> done;
  const uint64_t rights_now = rights_changes_.load();
  const bool with_rights = !data_only && rights_synced_.load() != rights_now;
  // Starts the writes on all devices before it waits for one; only a hint.
  for (uint32_t d = 0; d < parts_.count(); ++d) {
    (void)::sync_file_range(parts_.buffered(d), 0, 0, SYNC_FILE_RANGE_WRITE);
  }
  for (uint32_t d = 0; d < parts_.count() && done; ++d) {
    if (const int error = sync_part_of(d, with_rights); error != 0) done = Errno{error};
  }
  if (done && with_rights) rights_synced_.store(rights_now);
  const int stub = stub_.get();
  if (done && (data_only ? ::fdatasync(stub) : ::fsync(stub)) != 0) done = last_errno();
  if (!done) count_sync_error(done.error().code);
  return done;
}

void StripedFile::count_sync_error(int error) {
  SyncErrors before = sync_errors();
  while (!sync_errors_.compare_exchange_weak(before, {.count = before.count + 1, .last = error})) {
  }
}

// Asks each part; the lowest offset is the file's.
Result<uint64_t> StripedFile::seek(uint64_t offset, int whence) const {
  const uint64_t end = size();
  if (offset >= end) return Errno{ENXIO};
  uint64_t first = end;
  for (uint32_t d = 0; d < map_.geometry().device_count; ++d) {
    const uint64_t begin = map_.part_size(d, offset);
    if (begin == map_.part_size(d, end)) continue;  // the part has no byte from here on
    const off_t found = ::lseek(parts_.buffered(d), static_cast<off_t>(begin), whence);
    if (found < 0 && errno == ENXIO) continue;
    if (found < 0) return last_errno();
    const PartLocation at{.device_index = d, .part_offset = static_cast<uint64_t>(found)};
    first = std::min(first, std::max(offset, map_.logical_offset(at)));
  }
  if (whence == SEEK_DATA && first == end) return Errno{ENXIO};
  return first;
}

OpenSize StripedFile::look_at_open(const Layout& layout) const {
  return graphlane::look_at_open(layout, parts_of());
}

PartsStat stat_parts(const Volume& volume, const Layout& layout) {
  look_up_parts(volume, layout.file_id);
  PartsStat found;
  std::array<Fd, kDeviceCountMax> places;
  std::array<int, kDeviceCountMax> parts, roots;
  const uint32_t count = volume.device_count();
  for (uint32_t d = 0; d < count; ++d) {
    roots[d] = volume.devices()[d].root_fd.get();
    places[d] = find_part(roots[d], layout.file_id);
    parts[d] = places[d].get();
    struct stat st;
    if (places[d] && ::fstat(parts[d], &st) == 0) {
      found.block_count += static_cast<uint64_t>(st.st_blocks);
    }
  }
  if (layout.state == FileState::kOpen) {
    found.open = graphlane::look_at_open(layout, {.parts = {parts.data(), count},
                                                  .roots = {roots.data(), count},
                                                  .volume = layout.volume,
                                                  .file_id = layout.file_id,
                                                  .geometry = layout.geometry});
    if (layout.is_new && found.open.promised_bytes == 0 &&
        lacks_a_part(layout, {parts.data(), count}, {roots.data(), count})) {
      found.open = {};  // it was never synced
    }
  }
  return found;
}

Layout current_layout(const Volume& volume, const Layout& layout) {
  if (layout.state == FileState::kClosed || !volume.accept(layout, "")) return layout;
  Layout now = layout;
  const OpenSize open = stat_parts(volume, layout).open;
  now.logical_size = std::max(open.bytes, open.promised_bytes);
  return now;
}

Error damaged_error(const Volume& volume, const Layout& layout, std::string_view name,
                    const OpenSize& open) {
  return make_error(
      EIO,
      "{}: damaged: it had {} bytes, but part {} ends so that {} are left (graphlane export "
      "--salvage saves what is there)",
      name, open.promised_bytes, volume.part_path(open.short_device, layout.file_id), open.bytes);
}

}  // namespace graphlane
