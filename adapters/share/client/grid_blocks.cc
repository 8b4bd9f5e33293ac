#include "adapters/share/client/grid_blocks.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "graphfmt/edge.h"
#include "graphfmt/grid/grid_files.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/regular_file.h"

namespace graphlane::share {
namespace {

Outcome<std::string> read_up_to(const std::string& path, uint64_t bytes_max) {
  const Fd file = only_regular(
      Fd(sys::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)));
  if (!file) return os_error(errno, path, "cannot open");
  std::string bytes(bytes_max, '\0');
  const Result<size_t> got = pread_full(file.get(), bytes.data(), bytes.size(), 0);
  if (!got) return os_error(got.error().code, path, "cannot read");
  bytes.resize(*got);
  return bytes;
}

}  // namespace

Outcome<GridBlocks> read_grid_blocks(const std::string& dir) {
  auto meta = read_up_to(dir + "/meta", graphfmt::kGridMetaBytesMax);
  if (!meta) return meta.error();
  auto info = graphfmt::parse_grid_meta(*meta, dir + "/meta");
  if (!info) return info.error();
  const uint64_t block_count = uint64_t{info->partitions} * info->partitions;
  if (block_count > graphfmt::kPartitionsMax) {
    return make_error(EINVAL, "{}: {} blocks: {} at most can be shared", dir, block_count,
                      graphfmt::kPartitionsMax);
  }

  const std::string table_path = dir + "/column_offset";
  auto bytes = read_up_to(table_path, graphfmt::offset_table_bytes(info->partitions) + 1);
  if (!bytes) return bytes.error();
  const auto offsets = graphfmt::parse_offset_table(*bytes, *info, table_path);
  if (!offsets) return offsets.error();

  GridBlocks blocks{.info = *info, .layout = {}, .file = dir + "/column"};
  Layout& layout = blocks.layout;
  layout.partition_count = static_cast<uint32_t>(block_count);
  layout.record = {.size_bytes = static_cast<uint32_t>(graphfmt::edge_size_bytes(info->weighted)),
                   .source_offset_bytes = 0};
  layout.vertex_count = info->vertex_count;
  for (uint32_t p = 0; p < block_count; ++p) {
    const int64_t begin = (*offsets)[p];
    layout.ranges.push_back({.partition = p,
                             .file = 0,
                             .offset = static_cast<uint64_t>(begin),
                             .length_bytes = static_cast<uint64_t>((*offsets)[p + 1] - begin)});
  }
  return blocks;
}

}  // namespace graphlane::share
