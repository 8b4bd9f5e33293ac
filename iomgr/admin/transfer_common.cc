#include "iomgr/admin/transfer_common.h"

#include <set>

#include "iomgr/admin/bulk_copy.h"
#include "iomgr/base/files/file_attributes.h"
#include "iomgr/base/files/file_io.h"

namespace graphlane {

Outcome<void> read_source(int fd, const TreePlace& place, ByteRange range, char* buffer) {
  const Result<size_t> got = pread_full(fd, buffer, range.length_bytes, range.offset);
  if (!got) return place.error(got.error().code, "cannot read");
  if (*got < range.length_bytes) {
    return make_error(EBUSY, "{}: changed while it was read", place.shown);
  }
  return {};
}

uint64_t next_data_offset(int fd, uint64_t offset, uint64_t size_bytes) {
  const off_t data = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
  if (data >= 0) return static_cast<uint64_t>(data);
  return errno == ENXIO ? size_bytes : offset;  // only a hole is left, or SEEK_DATA is unsupported
}

Outcome<void> check_unchanged(int fd, const TreePlace& place, const struct stat& listed) {
  struct stat now;
  if (::fstat(fd, &now) != 0) return place.error(errno, "cannot read");
  if (now.st_size != listed.st_size || now.st_mtim.tv_sec != listed.st_mtim.tv_sec ||
      now.st_mtim.tv_nsec != listed.st_mtim.tv_nsec) {
    return make_error(EBUSY, "{}: changed while it was read", place.shown);
  }
  return {};
}

Outcome<Fd> create_file(const TreePlace& to, uint64_t size_bytes) {
  const ShortPlace place(to);
  Fd fd(
      ::openat(place.directory_fd(), place.path(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return to.error(errno, "cannot create");
  if (::ftruncate(fd.get(), static_cast<off_t>(size_bytes)) != 0) {
    return to.error(errno, "cannot write");
  }
  return fd;
}

Outcome<void> copy_plain(int from_fd, const TreePlace& from, const struct stat& info,
                         const TreePlace& to, TransferState* state) {
  const auto size = static_cast<uint64_t>(info.st_size);
  const Outcome<Fd> target = create_file(to, size);
  if (!target) return target.error();
  const BulkCopy copy{
      .size_bytes = size,
      .thread_count = 2,
      .read_in_turn = true,
      .write_in_turn = true,
      .read = [&](ByteRange range,
                  char* buffer) { return read_source(from_fd, from, range, buffer); },
      .write = [&](ByteRange range, const char* buffer) -> Outcome<void> {
        const Result<void> written =
            pwrite_full(target->get(), buffer, range.length_bytes, range.offset);
        if (!written) return to.error(written.error().code, "cannot write");
        return {};
      },
      .next_data = [&](uint64_t offset) { return next_data_offset(from_fd, offset, size); },
      .progress = state->progress};
  if (Outcome<void> copied = run(copy); !copied) return copied;
  if (Outcome<void> same = check_unchanged(from_fd, from, info); !same) return same;
  copy_attributes(from_fd, target->get());
  state->summary.plain_count += 1;
  state->summary.bytes += size;
  return {};
}

uint64_t total_bytes(const std::vector<TreeNode>& nodes) {
  uint64_t bytes = 0;
  std::set<std::pair<dev_t, ino_t>> counted;
  for (const TreeNode& node : nodes) {
    if (!S_ISREG(node.info.st_mode)) continue;
    if (node.info.st_nlink > 1 && !counted.insert({node.info.st_dev, node.info.st_ino}).second) {
      continue;
    }
    bytes += static_cast<uint64_t>(node.info.st_size);
  }
  return bytes;
}

CopyPath parse_copy_path(std::string path) {
  CopyPath parsed;
  parsed.contents = path == "." || path.ends_with("/.");
  if (path.ends_with("/.")) path.pop_back();
  parsed.slash = path.ends_with('/');
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  parsed.path = std::move(path);
  return parsed;
}

}  // namespace graphlane
