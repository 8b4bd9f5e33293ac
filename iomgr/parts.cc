#include "iomgr/parts.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <set>
#include <vector>

#include "iomgr/base/at_once.h"
#include "iomgr/base/sys.h"
#include "iomgr/file_attributes.h"
#include "iomgr/part_files.h"

namespace graphlane {
namespace {

constexpr size_t kUnsyncedPartsMax = 256;  // descriptors

Error part_error(const Volume& volume, uint32_t device_index, const Uuid& file_id, int code,
                 std::string_view action, std::string_view name) {
  return make_error(code, "{}: part {}: {}: {}", name, volume.part_path(device_index, file_id),
                    action, std::strerror(code));
}

// 0 or an errno.
int create_sized_part(int root_fd, const Uuid& file_id, uint64_t size_bytes, bool allocate) {
  const Result<Fd> opened = create_part(root_fd, file_id);
  if (!opened) return opened.error().code;
  const Fd& part = *opened;
  const auto size = static_cast<off_t>(size_bytes);
  if (allocate && size > 0 && ::fallocate(part.get(), 0, 0, size) != 0 && errno != EOPNOTSUPP) {
    return errno;
  }
  return ::ftruncate(part.get(), size) == 0 ? 0 : errno;
}

// Does one I/O to its end. 0 or an errno.
int finish(LaneIo* io) {
  for (;;) {
    const ssize_t moved = io->op == IoOp::kRead
                              ? sys::preadv(io->fd, io->iov, io->iov_count, io->part_offset)
                              : sys::pwritev(io->fd, io->iov, io->iov_count, io->part_offset);
    int error = 0;
    switch (settle(io, moved < 0 ? -errno : moved, &error)) {
      case IoStep::kDone: return 0;
      case IoStep::kAgain: break;
      case IoStep::kFailed: return error;
    }
  }
}

}  // namespace

Outcome<void> create_parts(const Volume& volume, const Layout& layout, std::string_view name,
                           bool allocate) {
  const uint32_t count = volume.device_count();
  std::vector<int> errors(count, 0);
  const auto create = [&](uint32_t d) {
    const uint64_t size = layout.map().part_size(d, layout.logical_size);
    errors[d] = create_sized_part(volume.devices()[d].root_fd.get(), layout.file_id, size, allocate);
  };
  if (allocate) {
    at_once(count, create);  // each reads where there is room
  } else {
    for (uint32_t d = 0; d < count && (d == 0 || errors[d - 1] == 0); ++d) create(d);
  }
  for (uint32_t d = 0; d < count; ++d) {
    if (errors[d] == 0) continue;
    (void)remove_parts(volume, layout.file_id);
    return part_error(volume, d, layout.file_id, errors[d], "cannot create", name);
  }
  return {};
}

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
    if (const int error = finish(&io); error != 0) {
      return part_error(volume, io.device_index, file.layout().file_id, error,
                        op == IoOp::kRead ? "cannot read" : "cannot write", file.name());
    }
  }
  return {};
}

void give_access_to_parts(const StripedFile& file, int like_fd) {
  for (uint32_t d = 0; d < file.parts().count(); ++d) copy_access(like_fd, file.parts().buffered(d));
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

// 0 or an errno, and whose part it was.
int UnsyncedParts::sync_device(uint32_t device_index, const File** failed) const {
  const int root_fd = volume_.devices()[device_index].root_fd.get();
  // For all, as far as the filesystem does it. Then nothing is left for the others to do.
  if (files_.size() > 1) (void)::syncfs(root_fd);
  std::set<std::string> directories;
  for (const File& file : files_) {
    *failed = &file;
    if (::fsync(file.parts[device_index].get()) != 0) return errno;
    directories.emplace(PartDirectory(PartName{file.id}).c_str());
  }
  directories.emplace("parts");
  for (const std::string& directory : directories) {
    if (const int error = sync_names(root_fd, directory.c_str())) return error;
  }
  return 0;
}

Outcome<void> UnsyncedParts::sync() {
  const uint32_t count = volume_.device_count();
  std::vector<int> errors(count, 0);
  std::vector<const File*> failed(count);
  if (!files_.empty()) {
    at_once(count, [&](uint32_t d) { errors[d] = sync_device(d, &failed[d]); });
  }
  for (uint32_t d = 0; d < count; ++d) {
    if (errors[d] != 0) {
      return part_error(volume_, d, failed[d]->id, errors[d], "cannot write", failed[d]->name);
    }
  }
  files_.clear();
  return {};
}

bool owns_parts(const Volume& volume, const Layout& layout, const struct stat& stub) {
  return ::geteuid() != 0 || may_give_access(volume, layout, stub);
}

bool may_give_access(const Volume& volume, const Layout& layout, const struct stat& stub) {
  if (stub.st_uid == 0) return true;
  const PartName name(layout.file_id);
  for (const Device& device : volume.devices()) {
    struct stat part;
    if (::fstatat(device.root_fd.get(), name.c_str(), &part, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (part.st_uid != stub.st_uid) return false;
  }
  return true;
}

Outcome<void> remove_parts(const Volume& volume, const Uuid& file_id) {
  Outcome<void> removed;
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    const int error = remove_part(volume.devices()[d].root_fd.get(), file_id);
    if (error != 0 && removed) {
      removed = os_error(error, volume.part_path(d, file_id), "cannot remove");
    }
  }
  return removed;
}

}  // namespace graphlane
