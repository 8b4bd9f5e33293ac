#include "iomgr/volume/parts/parts.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <vector>

#include "iomgr/base/files/file_attributes.h"
#include "iomgr/base/files/file_kind.h"
#include "iomgr/base/parallel_for.h"
#include "iomgr/base/sys.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/stub/part_record_io.h"

namespace graphlane {
namespace {

constexpr size_t kUnsyncedPartsMax = 256;  // descriptors
// A thread costs as much as the parts of a small file.
constexpr uint64_t kCreateInParallelMin = uint64_t{4} << 20;

Error part_error(const Volume& volume, uint32_t device_index, const Uuid& file_id, int code,
                 std::string_view action, std::string_view name) {
  const int root_fd = volume.device_roots()[device_index];
  return make_error(code, "{}: part {}: {}: {}", name, volume.part_path(device_index, file_id),
                    action, opening_error_text(code, root_fd, PartName(file_id).c_str()));
}

// Makes a part of its final size. Writes the record first, so that after a kill the part says
// `making`. 0 or an errno.
int create_sized_part(int root_fd, const Layout& layout, uint32_t device_index, bool allocate,
                      Fd* made) {
  Result<Fd> opened = create_part(root_fd, layout.file_id);
  if (!opened) return opened.error().code;
  *made = std::move(*opened);
  PartRecord record = part_record_of(layout, device_index, PartRecord::kMaking);
  record.synced_bytes = 0;
  if (const int error = write_part_record(made->get(), part_of(root_fd, layout), record);
      error != 0) {
    return error;
  }
  const auto size = static_cast<off_t>(layout.map().part_size(device_index, layout.logical_size));
  if (allocate && size > 0 && ::fallocate(made->get(), 0, 0, size) != 0 && errno != EOPNOTSUPP) {
    return errno;
  }
  return ::ftruncate(made->get(), size) == 0 ? 0 : errno;
}

}  // namespace

Outcome<NewParts> create_parts(const Volume& volume, const Layout& layout, std::string_view name,
                               bool allocate) {
  if (Outcome<void> writable = require_writable(volume); !writable) return writable.error();
  if (Outcome<void> noted = volume.note_change(); !noted) return noted.error();
  const uint32_t count = volume.device_count();
  NewParts parts(count);
  std::vector<int> errors(count, 0);
  const auto create = [&](uint32_t d) {
    errors[d] =
        create_sized_part(volume.devices()[d].root_fd.get(), layout, d, allocate, &parts[d]);
  };
  if (allocate && layout.logical_size > kCreateInParallelMin) {
    parallel_for(count, create);  // because each must read the free-space map
  } else {
    for (uint32_t d = 0; d < count && (d == 0 || errors[d - 1] == 0); ++d) create(d);
  }
  for (uint32_t d = 0; d < count; ++d) {
    if (errors[d] == 0) continue;
    (void)remove_parts(volume, layout.file_id);
    return part_error(volume, d, layout.file_id, errors[d], "cannot create", name);
  }
  return parts;
}

// Writes the record before it sets the owner, because that may take the right to write.
Outcome<void> bind_parts(const Volume& volume, std::span<const int> parts, const Layout& layout,
                         int stub_fd, uint8_t flags, std::string_view name,
                         const std::function<void(PartRecord&)>& change) {
  for (uint32_t d = 0; d < parts.size(); ++d) {
    const PartOf part = part_of(volume.devices()[d].root_fd.get(), layout);
    PartRecord record = part_record_of(layout, d, flags);
    if (change) change(record);
    int error = write_part_record(parts[d], part, record);
    copy_access(stub_fd, parts[d]);
    if (error == 0) error = share_part_access(parts[d], part);
    if (error != 0) {
      return part_error(volume, d, layout.file_id, error, "cannot say whose it is", name);
    }
  }
  return {};
}

Result<void> change_records(const Volume& volume, const Layout& layout, std::span<const int> parts,
                            const std::function<void(PartRecord&)>& change) {
  for (uint32_t d = 0; d < parts.size(); ++d) {
    const PartOf part = part_of(volume.devices()[d].root_fd.get(), layout);
    PartRecord record;
    const Result<RecordVerdict> verdict = read_part_record(parts[d], part, &record);
    if (!verdict) return verdict.error();
    if (*verdict != RecordVerdict::kRecord) return Errno{EIO};
    change(record);
    if (const int error = write_part_record(parts[d], part, record); error != 0) {
      return Errno{error};
    }
  }
  return {};
}

Result<void> sync_records(const Volume& volume, const Layout& layout, std::span<const int> parts) {
  const auto count = static_cast<uint32_t>(parts.size());
  std::vector<int> errors(count, 0);
  parallel_for(count, [&](uint32_t d) {
    errors[d] = sync_part_record(parts[d], part_of(volume.devices()[d].root_fd.get(), layout));
  });
  for (const int error : errors) {
    if (error != 0) return Errno{error};
  }
  return {};
}

namespace {

// The error of a read that verify() has refused: where the damage is. None: something else failed.
std::optional<Error> damage_error(const Volume& volume, const StripedFile& file, uint32_t d, int fd,
                                  ByteRange run) {
  const auto damage = file.parts().sums().find_damage(d, fd, run);
  if (!damage) return std::nullopt;
  const std::string part = volume.part_path(d, file.layout().file_id);
  if (damage->verdict != SumVerdict::kGood) {
    return make_error(EIO, "{}: part {} cannot be verified: its checksums {}", file.name(), part,
                      describe(damage->verdict));
  }
  const ByteRange bad = damage->run;
  const uint64_t at = file.map().logical_offset({.device_index = d, .part_offset = bad.offset});
  if (bad.end() - bad.offset > kBlockSize || bad.offset % kBlockSize != 0) {
    return make_error(
        EIO,
        "{}: part {} ({} bytes from byte {} of the file on) does not match its checksum: device {}",
        file.name(), part, bad.length_bytes, at, volume.devices()[d].directory);
  }
  return make_error(EIO, "{}: bytes {} to {} do not match their checksum: device {}, part {} at {}",
                    file.name(), at, at + bad.length_bytes - 1, volume.devices()[d].directory, part,
                    bad.offset);
}

}  // namespace

Outcome<void> transfer_striped(const Volume& volume, const StripedFile& file, IoOp op,
                               ByteRange range, void* buffer) {
  if (range.length_bytes == 0) return {};
  const Piece piece{.range = range, .buffer = buffer};
  const PartRequest request{.map = file.map(),
                            .parts = file.parts(),
                            .size_bytes = file.size(),
                            .op = op,
                            .direct = false,
                            .pieces = {&piece, 1}};
  RequestCutter cutter(request);
  for (LaneIo io; cutter.next(&io);) {
    const ByteRange run{.offset = io.part_offset, .length_bytes = io.expected_bytes};
    if (const int error = move_now(&io); error != 0) {
      const bool may_be_damage = error == EIO && io.sums != nullptr;
      if (may_be_damage) {
        if (auto damage = damage_error(volume, file, io.device_index, io.fd_buffered, run))
          return *damage;
      }
      return part_error(volume, io.device_index, file.layout().file_id, error,
                        op == IoOp::kRead ? "cannot read" : "cannot write", file.name());
    }
  }
  return {};
}

Outcome<void> UnsyncedParts::add(const StripedFile& file) {
  const uint32_t count = volume_.device_count();
  if ((files_.size() + 1) * count > kUnsyncedPartsMax) {
    if (Outcome<void> synced = sync(); !synced) return synced;
  }
  File& held = files_.emplace_back(file.layout().file_id, std::string(file.name()));
  for (uint32_t d = 0; d < count; ++d) {
    held.parts.emplace_back(::fcntl(file.parts().buffered(d), F_DUPFD_CLOEXEC, 0));
    if (!held.parts.back()) return part_error(volume_, d, held.id, errno, "cannot open", held.name);
  }
  return {};
}

namespace {

// Clears `making`. 0 or an errno.
int say_made(int part_fd, const PartOf& part) {
  PartRecord record;
  const Result<RecordVerdict> verdict = read_part_record(part_fd, part, &record);
  if (!verdict) return verdict.error().code;
  if (*verdict != RecordVerdict::kRecord || (record.flags & PartRecord::kMaking) == 0) return 0;
  record.flags &= static_cast<uint8_t>(~PartRecord::kMaking);
  return write_part_record(part_fd, part, record);
}

// Whether syncfs(2) makes all that is written below it durable, and reports what could not be. Network filesystems and
// FUSE may do nothing.
bool has_syncfs(int root_fd) {
  struct statfs filesystem;
  if (::fstatfs(root_fd, &filesystem) != 0) return false;
  const auto type = static_cast<uint32_t>(filesystem.f_type);
  return type == EXT4_SUPER_MAGIC || type == XFS_SUPER_MAGIC || type == BTRFS_SUPER_MAGIC ||
         type == F2FS_SUPER_MAGIC || type == TMPFS_MAGIC;
}

}  // namespace

// With many files: one syncfs() for all parts, and a second for their records. An fsync() of each record would make the
// journal commit each time. False: the files must be synced one by one, which costs less if the first syncfs() did something.
bool UnsyncedParts::sync_device_at_once(uint32_t device_index) const {
  const int root_fd = volume_.devices()[device_index].root_fd.get();
  if (files_.size() < 2 || ::syncfs(root_fd) != 0 || !has_syncfs(root_fd)) return false;
  for (const File& file : files_) {
    const PartOf part{.root_fd = root_fd, .volume = volume_.uuid(), .file_id = file.id};
    if (say_made(file.parts[device_index].get(), part) != 0) return false;
  }
  return ::syncfs(root_fd) == 0;
}

// 0 or an errno, and the file of the part that failed.
int UnsyncedParts::sync_device(uint32_t device_index, const File** failed) const {
  if (sync_device_at_once(device_index)) return 0;
  const int root_fd = volume_.devices()[device_index].root_fd.get();
  std::set<std::string> directories;
  std::set<std::string> sum_directories;
  for (const File& file : files_) {
    *failed = &file;
    const PartOf part{.root_fd = root_fd, .volume = volume_.uuid(), .file_id = file.id};
    const int fd = file.parts[device_index].get();
    if (const int error = say_made(fd, part)) return error;
    if (const int error = sync_part_record(fd, part)) return error;
    if (const int error = sync_part_sums(fd, part)) return error;
    directories.emplace(PartDirectory(PartName{file.id}).c_str());
    sum_directories.emplace(PartSumName{file.id}.directory());
  }
  directories.emplace("parts");
  for (const std::string& directory : directories) {
    if (const int error = sync_names(root_fd, directory.c_str())) return error;
  }
  bool has_sums = false;
  for (const std::string& directory : sum_directories) {
    const int error = sync_names(root_fd, directory.c_str());
    if (error == ENOENT) continue;  // small parts have no checksums
    if (error != 0) return error;
    has_sums = true;
  }
  return has_sums ? sync_names(root_fd, kSums) : 0;
}

Outcome<void> UnsyncedParts::sync() {
  const uint32_t count = volume_.device_count();
  std::vector<int> errors(count, 0);
  std::vector<const File*> failed(count);
  if (!files_.empty()) {
    parallel_for(count, [&](uint32_t d) { errors[d] = sync_device(d, &failed[d]); });
  }
  for (uint32_t d = 0; d < count; ++d) {
    if (errors[d] != 0) {
      return part_error(volume_, d, failed[d]->id, errors[d], "cannot write", failed[d]->name);
    }
  }
  files_.clear();
  return {};
}

Outcome<void> require_writable(const Volume& volume) {
  // Known before anything is changed, so that no file loses some of its parts.
  for (const Device& device : volume.devices()) {
    if (::faccessat(device.root_fd.get(), ".", W_OK, AT_EACCESS) != 0 && errno == EROFS) {
      return os_error(EROFS, device.root, "cannot change files");
    }
  }
  if (volume.format() != 1) return {};
  return make_error(
      EROFS,
      "{0}: a volume of format 1 is read only (`graphlane check --upgrade {0}` makes it "
      "one of format 2)",
      volume.root());
}

Outcome<void> verify_parts(const Volume& volume, int stub_fd, const Layout& layout,
                           std::string_view name) {
  if (Outcome<void> accepted = volume.accept(layout, name); !accepted) return accepted;
  const Result<StubSeen> seen = identify_stub(stub_fd);
  if (!seen) return os_error(seen.error().code, name, "cannot look at the stub");
  const PartsOwner owner{.stub = *seen, .volume_format = volume.format()};
  const Result<void, PartError> owned = verify_named_parts(volume.device_roots(), layout, owner);
  // The existing parts of a never-synced file are its own.
  if (owned || owned.error().ownership == Ownership::kNeverSynced) return {};
  return describe_part_error(volume, layout, name, owned.error());
}

void mark_removed(const Volume& volume, const Uuid& file_id) {
  for (const auto& device : volume.devices()) {
    mark_removed({.root_fd = device.root_fd.get(), .volume = volume.uuid(), .file_id = file_id});
  }
}

Outcome<void> remove_parts(const Volume& volume, const Uuid& file_id) {
  if (Outcome<void> writable = require_writable(volume); !writable) return writable;
  if (Outcome<void> noted = volume.note_change(); !noted) return noted;
  Outcome<void> removed;
  mark_removed(volume, file_id);
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    const int error = remove_part(volume.devices()[d].root_fd.get(), file_id);
    if (error != 0 && removed) {
      removed = os_error(error, volume.part_path(d, file_id), "cannot remove");
    }
  }
  return removed;
}

Outcome<void> remove_all_parts(const Volume& volume, const std::vector<Uuid>& file_ids) {
  Outcome<void> result;
  for (const Uuid& file_id : file_ids) {
    if (Outcome<void> removed = remove_parts(volume, file_id); !removed) result = removed;
  }
  return result;
}

}  // namespace graphlane
