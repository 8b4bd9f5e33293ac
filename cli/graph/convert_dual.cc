#include "cli/graph/convert_dual.h"

#include "graphfmt/dual/dual_build.h"
#include "iomgr/base/size.h"

namespace graphlane::cli {
using graphfmt::DualSide;
namespace {

double bits_for_arcs(uint64_t bytes, uint64_t arcs, bool is_directed) {
  return arcs == 0
             ? 0
             : 8.0 * static_cast<double>(bytes) / static_cast<double>(arcs * (is_directed ? 2 : 1));
}

// Bits per arc, over both sides.
struct DualBits {
  explicit DualBits(const graphfmt::Dual& dual) {
    uint64_t lists_bytes = 0;
    for (const DualSide side : {DualSide::kOut, DualSide::kIn}) {
      if (side == DualSide::kIn && !dual.is_directed()) break;
      lists_bytes += dual.lists_bytes(side);
      index_bytes += dual.index_bytes(side);
    }
    lists = bits_for_arcs(lists_bytes, dual.header().arc_count, dual.is_directed());
    index = bits_for_arcs(index_bytes, dual.header().arc_count, dual.is_directed());
  }
  double lists = 0;
  double index = 0;
  uint64_t index_bytes = 0;
};

}  // namespace

Outcome<std::vector<std::string>> convert_to_dual(const ToStored& options, uint32_t partitions) {
  const Outcome<graphfmt::CodecKind> codec = graphfmt::parse_codec(options.codec);
  if (!codec) return codec.error();
  const bool is_directed = !options.input.undirected;
  Outcome<graphfmt::DualSummary> built = graphfmt::build_dual({.input = options.input,
                                                               .output = options.path,
                                                               .codec = *codec,
                                                               .partitions = partitions,
                                                               .overwrite = options.overwrite});
  if (!built) return built.error();
  if (!quiet) {
    fmt::print(
        "{}: {} vertices, {}, {}, in {} x {} blocks, codec {} with {:.2f} bits an arc and "
        "{:.2f} of index, {}\n",
        options.shown, built->vertex_count, counted(built->edge_count, "edge"),
        direction_of(is_directed), built->partitions, built->partitions, name_of(*codec),
        bits_for_arcs(built->lists_bytes, built->arc_count, is_directed),
        bits_for_arcs(built->index_bytes, built->arc_count, is_directed),
        format_size(built->output_bytes));
  }
  return std::move(built->notes);
}

Outcome<int> show_dual(const std::string& path, bool as_json) {
  const auto dual = graphfmt::Dual::open(path);
  if (!dual) return dual.error();
  const graphfmt::GraphHeader& header = (*dual)->header();
  const DualBits bits(**dual);
  if (as_json) {
    Json about = graph_json(path, header);
    about["partitions"] = header.partitions;
    about["bits_an_arc"] = bits.lists;
    about["index_bits_an_arc"] = bits.index;
    about["size"] = stored_bytes(header);
    about["index_size"] = bits.index_bytes;
    print_json(about);
    return kOk;
  }
  print_graph(path, header);
  print_fact("blocks", fmt::format("{} x {}", header.partitions, header.partitions));
  print_weights(header);
  print_fact("codec", fmt::format("{}, {:.2f} bits an arc", name_of(header.codec), bits.lists));
  print_fact("index",
             fmt::format("{}, {:.2f} bits an arc", format_size(bits.index_bytes), bits.index));
  print_fact("size", format_size(stored_bytes(header)));
  return kOk;
}

}  // namespace graphlane::cli
