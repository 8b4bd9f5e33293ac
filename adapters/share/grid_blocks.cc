#include "adapters/share/grid_blocks.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "graphfmt/edge.h"
#include "graphfmt/grid_files.h"
#include "iomgr/base/file_io.h"

namespace graphlane::share {
namespace {

Outcome<std::string> read_up_to(const std::string& path, uint64_t bytes_max) {
  const Fd file(sys::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return os_error(errno, path, "cannot open");
  std::string bytes(bytes_max, '\0');
  const Result<size_t> got = pread_full(file.get(), bytes.data(), bytes.size(), 0);
  if (!got) return os_error(got.error().code, path, "cannot read");
  bytes.resize(*got);
  return bytes;
}

}  // namespace

Outcome<GridBlocks> read_grid_blocks(const std::string& dir) {
  auto meta = read_up_to(dir + "/meta", kGridMetaBytesMax);
  if (!meta) return meta.error();
  auto info = parse_grid_meta(*meta, dir + "/meta");
  if (!info) return info.error();
  const uint64_t block_count = uint64_t{info->partitions} * info->partitions;
  if (block_count > kPartitionsMax) {
    return make_error(EINVAL, "{}: {} blocks: {} at most can be shared", dir, block_count, kPartitionsMax);
  }

  const std::string table_path = dir + "/column_offset";
  const uint64_t table_bytes = offset_table_bytes(info->partitions);
  auto bytes = read_up_to(table_path, table_bytes + 1);
  if (!bytes) return bytes.error();
  if (bytes->size() != table_bytes) {
    return make_error(EINVAL, "{}: not {} bytes, as {} partitions want", table_path, table_bytes,
                      info->partitions);
  }
  std::vector<int64_t> offsets(block_count + 1);
  std::memcpy(offsets.data(), bytes->data(), table_bytes);
  const uint64_t edge_bytes = edge_size_bytes(info->weighted);
  const auto end = static_cast<int64_t>(info->edge_count * edge_bytes);
  if (offsets.front() != 0 || offsets.back() != end) {
    return make_error(EINVAL, "{}: does not reach from 0 to {}, the bytes of {} edges", table_path, end,
                      info->edge_count);
  }

  GridBlocks blocks{.info = *info, .layout = {}, .file = dir + "/column"};
  Layout& layout = blocks.layout;
  layout.partition_count = static_cast<uint32_t>(block_count);
  layout.record = {.size_bytes = static_cast<uint32_t>(edge_bytes), .source_offset_bytes = 0};
  layout.vertex_count = info->vertex_count;
  for (uint32_t p = 0; p < block_count; ++p) {
    if (offsets[p] > offsets[p + 1]) {
      return make_error(EINVAL, "{}: byte {}: offset {} after {}", table_path, 8 * (p + 1),
                        offsets[p + 1], offsets[p]);
    }
    layout.ranges.push_back({.partition = p,
                             .file = 0,
                             .offset = static_cast<uint64_t>(offsets[p]),
                             .length_bytes = static_cast<uint64_t>(offsets[p + 1] - offsets[p])});
  }
  return blocks;
}

}  // namespace graphlane::share
