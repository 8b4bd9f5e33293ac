#include "graphfmt/edge_list.h"

#include "graphfmt/edge_source.h"
#include "graphfmt/edge_writer.h"
#include "graphfmt/line.h"

namespace graphlane {

Outcome<EdgeFormat> parse_edge_format(std::string_view name) {
  if (name == "snap" || name == "txt") return EdgeFormat::kSnap;
  if (name == "bin") return EdgeFormat::kBin;
  if (name == "u32") return EdgeFormat::kU32;
  return make_error(EINVAL, "'{}': not an edge list format (choose snap, bin or u32)", name);
}

std::string_view name_of(EdgeFormat format) {
  switch (format) {
    case EdgeFormat::kSnap: return "snap";
    case EdgeFormat::kBin: return "bin";
    case EdgeFormat::kU32: return "u32";
  }
  return "?";
}

Outcome<EdgeListSummary> read_edges(const EdgeListOptions& options, EdgeSink& sink) {
  if (options.vertices > kVertexCountMax) {
    return make_error(EINVAL, "{} vertices: engines count at most {}", options.vertices, kVertexCountMax);
  }
  return or_no_memory([&] {
    return options.format == EdgeFormat::kSnap ? read_snap(options, sink) : read_binary(options, sink);
  });
}

Outcome<EdgeListSummary> convert_edges(const EdgeListOptions& input, const EdgeListOutput& output) {
  return or_no_memory([&]() -> Outcome<EdgeListSummary> {
    auto writer = EdgeWriter::create(output);
    if (!writer) return writer.error();
    auto summary = read_edges(input, **writer);
    if (!summary) return summary.error();
    if (auto finished = (*writer)->finish(); !finished) return finished.error();
    return summary;
  });
}

}  // namespace graphlane
