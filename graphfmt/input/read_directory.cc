// Graphs that are directories, as edge lists.
#include <sys/stat.h>

#include "graphfmt/grid.h"
#include "graphfmt/input/edge_source.h"
#include "graphfmt/lists_read.h"

namespace graphlane {
namespace {

bool has_file(const std::string& dir, const std::string& name) {
  struct stat st;
  return ::stat((dir + "/" + name).c_str(), &st) == 0;
}

// `row` is a binary list, block after block.
ReadResult read_grid_edges(const EdgeListOptions& options, const EdgeTarget& target) {
  const Outcome<GridInfo> info = read_grid(options.path);
  if (!info) return info.error();
  if (info->weighted != options.weighted) {
    return make_error(EINVAL, "{}: a grid {} weights: {}", options.path, info->weighted ? "with" : "without",
                      info->weighted ? "-w keeps them" : "leave -w out");
  }
  EdgeListOptions row = options;
  row.path = options.path + "/row";
  row.format = EdgeFormat::kBin;
  row.stored_weights = WeightType::kFloat32;
  auto source = ByteSource::open(row.path);
  if (!source) return source.error();
  ReadResult result = read_binary(**source, row, target);
  if (result) result->vertex_count = info->vertex_count;
  return result;
}

}  // namespace

ReadResult read_graph_directory(const EdgeListOptions& options, const EdgeTarget& target) {
  const std::string& dir = options.path;
  EdgeFormat found = EdgeFormat::kAuto;
  if (has_file(dir, "meta") && has_file(dir, "row")) found = EdgeFormat::kGrid;
  if (is_stored_graph(dir)) found = EdgeFormat::kLists;
  if (found == EdgeFormat::kAuto) {
    return make_error(EISDIR, "{}: is a directory, and neither a grid nor lists", dir);
  }
  if (options.format != EdgeFormat::kAuto && options.format != found) {
    return make_error(EISDIR, "{}: is a {}, a directory: --from {} reads it", dir, name_of(found), name_of(found));
  }
  return found == EdgeFormat::kLists ? read_lists(options, *target.numbers) : read_grid_edges(options, target);
}

}  // namespace graphlane
