#include "adapters/share/wire/layout.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstring>

#include "iomgr/base/files/file_times.h"

namespace graphlane::share {
namespace {

struct LayoutHeader {
  static constexpr uint32_t kMagic = 0x314c5347;  // "GSL1"
  uint32_t magic = kMagic;
  uint32_t by_loader = 0;
  uint32_t partition_count = 0;
  RecordFormat record;
  uint32_t padding = 0;
  uint64_t vertex_count = 0;
  uint64_t range_count = 0;
};
static_assert(sizeof(LayoutHeader) == 40);

}  // namespace

std::string Layout::to_bytes() const {
  const LayoutHeader header{.by_loader = by_loader,
                            .partition_count = partition_count,
                            .record = record,
                            .vertex_count = vertex_count,
                            .range_count = ranges.size()};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(ranges.data()), ranges.size() * sizeof(FileRange));
  return bytes;
}

Outcome<Layout> Layout::from_bytes(std::string_view bytes) {
  LayoutHeader header;
  if (bytes.size() < sizeof header) return make_error(EPROTO, "the graph's layout is cut short");
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.remove_prefix(sizeof header);
  if (header.magic != LayoutHeader::kMagic || bytes.size() % sizeof(FileRange) != 0 ||
      header.range_count != bytes.size() / sizeof(FileRange)) {
    return make_error(EPROTO, "the graph's layout is malformed");
  }
  Layout layout{.by_loader = header.by_loader != 0,
                .partition_count = header.partition_count,
                .record = header.record,
                .vertex_count = header.vertex_count,
                .ranges = std::vector<FileRange>(header.range_count)};
  if (!bytes.empty()) std::memcpy(layout.ranges.data(), bytes.data(), bytes.size());
  return layout;
}

Result<FileIdentity> identify(int file) {
  const int flags = ::fcntl(file, F_GETFL);
  if (flags < 0) return last_errno();
  // O_PATH descriptors do not prove a right to read.
  if ((flags & O_PATH) != 0 || (flags & O_ACCMODE) == O_WRONLY) return Errno{EBADF};
  return identify_without_rights(file);
}

Result<FileIdentity> identify_without_rights(int file) {
  struct statx st;
  if (::statx(file, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) != 0) {
    return last_errno();
  }
  if (!S_ISREG(st.stx_mode)) return Errno{EBADF};
  return FileIdentity{.device = makedev(st.stx_dev_major, st.stx_dev_minor),
                      .inode = st.stx_ino,
                      .born_ns = (st.stx_mask & STATX_BTIME) != 0 ? nanoseconds(st.stx_btime) : 0,
                      .size_bytes = st.stx_size,
                      .modified_ns = nanoseconds(st.stx_mtime)};
}

Outcome<void> check(const Layout& layout, std::span<const FileIdentity> files) {
  if (layout.partition_count == 0 || layout.partition_count > kPartitionsMax) {
    return make_error(EINVAL, "{} partitions: 1 to {} are possible", layout.partition_count,
                      kPartitionsMax);
  }
  const RecordFormat& record = layout.record;
  if (record.size_bytes != 0 && uint64_t{record.source_offset_bytes} + 4 > record.size_bytes) {
    return make_error(EINVAL, "a source at byte {} is not within an edge of {} bytes",
                      record.source_offset_bytes, record.size_bytes);
  }
  if (files.empty() || files.size() > kFilesMax) {
    return make_error(EINVAL, "{} files: 1 to {} are possible", files.size(), kFilesMax);
  }
  uint32_t partition = 0;
  uint64_t graph_bytes = 0;
  for (const FileRange& range : layout.ranges) {
    if (range.partition < partition || range.partition >= layout.partition_count) {
      return make_error(EINVAL, "a range of partition {} follows one of partition {} of {}",
                        range.partition, partition, layout.partition_count);
    }
    partition = range.partition;
    if (range.file >= files.size()) {
      return make_error(EINVAL, "partition {}: file {} of {}", partition, range.file, files.size());
    }
    const uint64_t size_bytes = files[range.file].size_bytes;
    if (range.offset > size_bytes || range.length_bytes > size_bytes - range.offset) {
      return make_error(EINVAL, "partition {}: {} bytes at {} of a file that has {}", partition,
                        range.length_bytes, range.offset, size_bytes);
    }
    // Ranges may overlap, so the files' sizes do not bound the sum.
    if (__builtin_add_overflow(graph_bytes, range.length_bytes, &graph_bytes)) {
      return make_error(EINVAL, "partition {}: with it the graph has 2^64 bytes or more",
                        partition);
    }
  }
  if (record.size_bytes == 0) return {};
  const std::vector<uint64_t> sizes = partition_sizes(layout);
  for (uint32_t p = 0; p < sizes.size(); ++p) {
    if (sizes[p] % record.size_bytes != 0) {
      return make_error(EINVAL, "partition {}: {} bytes are not whole edges of {}", p, sizes[p],
                        record.size_bytes);
    }
  }
  return {};
}

std::vector<uint64_t> partition_sizes(const Layout& layout) {
  std::vector<uint64_t> sizes(layout.partition_count);
  for (const FileRange& range : layout.ranges) sizes[range.partition] += range.length_bytes;
  return sizes;
}

}  // namespace graphlane::share
