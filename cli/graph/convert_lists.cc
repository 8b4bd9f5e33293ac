#include "cli/graph/convert_lists.h"

#include "cli/graph/convert_dual.h"
#include "cli/graph/convert_pages.h"
#include "graphfmt/dual/dual_read.h"
#include "graphfmt/lists/lists_read.h"
#include "graphfmt/pages/pages_read.h"
#include "graphfmt/staging.h"
#include "iomgr/base/size.h"

namespace graphlane::cli {
using namespace graphfmt;
namespace {

double bits_an_arc(const Lists& lists) {
  uint64_t arcs = 0, bytes = 0;
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    if (direction == Direction::kIn && !lists.header().is_directed) break;
    arcs += lists.header().arc_count;
    bytes += lists.file_bytes(direction);
  }
  return arcs == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(arcs);
}

double bits_a_weight(const GraphHeader& header) {
  const uint64_t arcs = header.arc_count * (header.is_directed ? 2 : 1);
  if (arcs == 0 || header.weight == WeightKind::kNone) return 0;
  if (!header.encodes_weights()) return 8.0 * static_cast<double>(weight_bytes(header.weight));
  return 8.0 * static_cast<double>(header.weights_bytes) / static_cast<double>(arcs);
}

}  // namespace

std::string_view direction_of(bool is_directed) { return is_directed ? "directed" : "undirected"; }

void print_fact(std::string_view key, const std::string& text) {
  fmt::print("{:<14}{}\n", key, text);
}

void print_graph(const std::string& path, const GraphHeader& header,
                 const std::string& more_of_vertices) {
  print_fact("path", path);
  print_fact("format", std::string(name_of(header.kind)));
  print_fact("vertices", std::to_string(header.vertex_count) + more_of_vertices);
  print_fact("edges", fmt::format("{}, {}", header.edge_count, direction_of(header.is_directed)));
}

Json graph_json(const std::string& path, const GraphHeader& header) {
  return {{"path", path},
          {"format", std::string(name_of(header.kind))},
          {"vertices", header.vertex_count},
          {"edges", header.edge_count},
          {"arcs", header.arc_count},
          {"directed", header.is_directed},
          {"weights", std::string(name_of(header.weight))},
          {"bits_a_weight", bits_a_weight(header)},
          {"codec", std::string(name_of(header.codec))}};
}

void print_weights(const GraphHeader& header) {
  const bool is_weighted = header.weight != WeightKind::kNone;
  print_fact(
      "weights",
      fmt::format("{}{}", name_of(header.weight),
                  is_weighted ? fmt::format(", {:.2f} bits a weight", bits_a_weight(header)) : ""));
}

uint64_t stored_bytes(const GraphHeader& header) {
  uint64_t bytes = kGraphHeaderBytes;
  for (const GraphHeader::File& file : header.files) bytes += file.size_bytes;
  return bytes;
}

Outcome<std::vector<std::string>> convert_to_lists(const ToStored& options) {
  const Outcome<CodecKind> codec = parse_codec(options.codec);
  if (!codec) return codec.error();
  const bool is_directed = !options.input.undirected;
  Outcome<ListsSummary> built = build_lists({.input = options.input,
                                             .output = options.path,
                                             .codec = *codec,
                                             .overwrite = options.overwrite});
  if (!built) return built.error();
  if (!quiet) {
    fmt::print("{}: {} vertices, {}, {}, codec {} with {:.2f} bits an arc, {}\n", options.shown,
               built->vertex_count, counted(built->edge_count, "edge"), direction_of(is_directed),
               name_of(*codec), built->bits_an_arc(is_directed), format_size(built->output_bytes));
  }
  return std::move(built->notes);
}

std::optional<WeightType> stored_weights(const std::string& path) {
  const Outcome<GraphHeader> header = read_graph_header(path);
  if (!header) return std::nullopt;
  switch (header->weight) {
    case WeightKind::kNone: break;
    case WeightKind::kFloat32: return WeightType::kFloat32;
    case WeightKind::kFloat64: return WeightType::kFloat64;
    case WeightKind::kInt64: return WeightType::kInt64;
  }
  return std::nullopt;
}

Outcome<void> may_become_lists(const std::string& path) {
  const Outcome<void> may = Staging::may_replace(path, Staging::Kind::kDirectory, true);
  return may ? may_become_stored_graph(path) : may;
}

Outcome<int> check_stored_graph(const std::string& path) {
  catch_interrupts();
  Outcome<GraphHeader> header = read_graph_header(path);
  if (!header) return header.error();
  header = header->kind == GraphKind::kPages  ? check_pages(path)
           : header->kind == GraphKind::kDual ? check_dual(path)
                                              : check_lists(path);
  if (!header) return header.error();
  if (!quiet) {
    fmt::print("{}: {} vertices, {}, {}, no problems\n", path, header->vertex_count,
               counted(header->edge_count, "edge"), direction_of(header->is_directed));
  }
  return kOk;
}

Outcome<int> show_stored_graph(const std::string& path, bool as_json) {
  const Outcome<GraphHeader> found = read_graph_header(path);
  if (found && found->kind == GraphKind::kPages) return show_pages(path, as_json);
  if (found && found->kind == GraphKind::kDual) return show_dual(path, as_json);
  const auto lists = Lists::open(path);
  if (!lists) return lists.error();
  const GraphHeader& header = (*lists)->header();
  if (as_json) {
    Json about = graph_json(path, header);
    about["bits_an_arc"] = bits_an_arc(**lists);
    about["size"] = stored_bytes(header);
    about["index_size"] = (*lists)->index_bytes(Direction::kOut);
    print_json(about);
    return kOk;
  }
  print_graph(path, header);
  print_weights(header);
  print_fact("codec",
             fmt::format("{}, {:.2f} bits an arc", name_of(header.codec), bits_an_arc(**lists)));
  print_fact("size", format_size(stored_bytes(header)));
  print_fact("index", fmt::format("{} in memory for a direction",
                                  format_size((*lists)->index_bytes(Direction::kOut))));
  return kOk;
}

}  // namespace graphlane::cli
