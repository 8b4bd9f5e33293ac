#include "graphfmt/graph_requests.h"

#include <fnmatch.h>

#include <algorithm>

#include "graphfmt/grid/grid_files.h"
#include "graphfmt/grid/grid_requests.h"

namespace graphlane::graphfmt {
namespace {

constexpr char kAdjacencyGlob[] = "*.[0-9]*_[0-9]*.adj";
constexpr char kBlockDirectoryGlob[] = "*.[0-9]*_[0-9]*_blockdir_[0-9]*";
constexpr uint64_t kMemoryShardRequest = 16u << 20;
constexpr uint64_t kSlidingShardRequest = 1u << 20;

bool matches(const char* glob, const std::string& name) {
  return ::fnmatch(glob, name.c_str(), 0) == 0;
}

std::string table_of(const std::string& sweep) { return sweep + "_offset"; }

// The offset table of `row` or `column`.
Outcome<std::vector<int64_t>> read_table(const GraphDirectory& directory, const std::string& name,
                                         const GridInfo& info, uint64_t swept_bytes) {
  const Outcome<std::string> bytes =
      directory.read(table_of(name), offset_table_bytes(info.partitions));
  if (!bytes) return bytes.error();
  auto table = parse_offset_table(*bytes, info, directory.path_of(table_of(name)));
  if (!table) return table;
  const auto end = static_cast<uint64_t>(table->back());
  if (swept_bytes != end) {
    return make_error(EINVAL, "{}: byte {}: {} bytes, expected {}", directory.path_of(name),
                      std::min(swept_bytes, end), swept_bytes, end);
  }
  return table;
}

Outcome<GraphRequests> grid(const GraphDirectory& directory) {
  const Outcome<std::string> meta = directory.read("meta", kGridMetaBytesMax);
  if (!meta) return meta.error();
  const Outcome<GridInfo> info = parse_grid_meta(*meta, directory.path_of("meta"));
  if (!info) return info.error();
  GraphRequests found{.format = GraphFormat::kGrid, .grid = *info, .sweeps = {}};
  for (const char* name : {"column", "row"}) {
    // A program that sweeps one way only does without the other.
    if (!directory.has(name) && !directory.has(table_of(name))) continue;
    const Outcome<GraphFile> file = directory.look(name);
    if (!file) return file.error();
    const auto table = read_table(directory, name, *info, file->size_bytes);
    if (!table) return table.error();
    found.sweeps.push_back({.name = name,
                            .bytes = file->size_bytes,
                            .requests = grid_requests(*table, info->weighted)});
  }
  return found;
}

// The whole file, `request_bytes` at a time.
void add_pass(uint64_t file_bytes, uint64_t request_bytes, RequestSizes* sizes) {
  sizes->add(request_bytes, file_bytes / request_bytes);
  if (file_bytes % request_bytes != 0) sizes->add(file_bytes % request_bytes);
}

Outcome<Sweep> adjacency(const GraphDirectory& directory, const std::string& name) {
  const Outcome<GraphFile> file = directory.look(name);
  if (!file) return file.error();
  Sweep sweep{.name = name, .bytes = file->size_bytes, .requests = {}};
  add_pass(file->size_bytes, kMemoryShardRequest, &sweep.requests);
  add_pass(file->size_bytes, kSlidingShardRequest, &sweep.requests);
  return sweep;
}

// Compressed blocks have the sizes that the last iteration left.
Outcome<Sweep> edge_values(const GraphDirectory& directory, const std::string& block_directory) {
  const auto names = directory.files(block_directory);
  if (!names) return names.error();
  Sweep sweep{.name = sweep_of(block_directory + "/0"),
              .file_count = names->size(),
              .requests = {},
              .is_rewritten = true};
  for (const std::string& name : *names) {
    const Outcome<GraphFile> file = directory.look(name);
    if (!file) return file.error();
    sweep.bytes += file->size_bytes;
    if (file->size_bytes > 0) sweep.requests.add(file->size_bytes);
  }
  return sweep;
}

Outcome<GraphRequests> shards(const GraphDirectory& directory,
                              const std::vector<std::string>& files) {
  GraphRequests found{.format = GraphFormat::kShards, .grid = {}, .sweeps = {}};
  for (const std::string& name : files) {
    if (!matches(kAdjacencyGlob, name)) continue;
    Outcome<Sweep> sweep = adjacency(directory, name);
    if (!sweep) return sweep.error();
    found.sweeps.push_back(std::move(*sweep));
  }
  const auto directories = directory.directories();
  if (!directories) return directories.error();
  for (const std::string& name : *directories) {
    if (!matches(kBlockDirectoryGlob, name)) continue;
    Outcome<Sweep> sweep = edge_values(directory, name);
    if (!sweep) return sweep.error();
    found.sweeps.push_back(std::move(*sweep));
  }
  return found;
}

}  // namespace

std::string sweep_of(const std::string& file) {
  const size_t slash = file.find('/');
  if (slash == std::string::npos || !matches(kBlockDirectoryGlob, file.substr(0, slash))) {
    return file;
  }
  return file.substr(0, slash) + "/*";
}

Outcome<GraphRequests> find_requests(const GraphDirectory& directory) {
  if (directory.has("column_offset") || directory.has("row_offset")) return grid(directory);
  const auto files = directory.files();
  if (!files) return files.error();
  const bool is_sharded = std::any_of(files->begin(), files->end(), [](const std::string& name) {
    return matches(kAdjacencyGlob, name);
  });
  if (is_sharded) return shards(directory, *files);
  return GraphRequests{};
}

}  // namespace graphlane::graphfmt
