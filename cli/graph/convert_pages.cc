#include "cli/graph/convert_pages.h"

#include "cli/graph/convert_lists.h"
#include "iomgr/base/size.h"

namespace graphlane::cli {
namespace {

// The pages of both directions.
uint64_t page_count_of(const graphfmt::Pages& pages) {
  const uint64_t out = pages.store(graphfmt::Direction::kOut).page_count();
  return pages.header().is_directed ? out + pages.store(graphfmt::Direction::kIn).page_count()
                                    : out;
}

}  // namespace

Outcome<std::vector<std::string>> convert_to_pages(const ToStored& options,
                                                   std::optional<uint64_t> page_size_bytes) {
  const Outcome<graphfmt::CodecKind> codec = graphfmt::parse_codec(options.codec);
  if (!codec) return codec.error();
  const uint64_t page_bytes = page_size_bytes.value_or(graphfmt::kPageBytesUsual);
  if (!graphfmt::is_page_size(page_bytes)) {
    return make_error(EINVAL, "--page {}: a multiple of 4K up to 1M is expected", page_bytes);
  }
  Outcome<graphfmt::PagesSummary> built =
      graphfmt::build_pages({.input = options.input,
                             .output = options.path,
                             .codec = *codec,
                             .page_bytes = static_cast<uint32_t>(page_bytes),
                             .overwrite = options.overwrite});
  if (!built) return built.error();
  if (!quiet) {
    fmt::print("{}: {} vertices, {}, {}, codec {}, {} of {}, {}\n", options.shown,
               built->vertex_count, counted(built->edge_count, "edge"),
               direction_of(!options.input.undirected), name_of(*codec),
               counted(built->page_count, "page"), format_size(page_bytes),
               format_size(built->output_bytes));
  }
  return std::move(built->notes);
}

Outcome<int> show_pages(const std::string& path, bool as_json) {
  const auto pages = graphfmt::Pages::open(path);
  if (!pages) return pages.error();
  const graphfmt::GraphHeader& header = (*pages)->header();
  const graphfmt::PageStore& out = (*pages)->store(graphfmt::Direction::kOut);
  if (as_json) {
    Json about = graph_json(path, header);
    about["keys"] = out.key_count();
    about["pages"] = page_count_of(**pages);
    about["page_size"] = out.page_bytes();
    about["size"] = stored_bytes(header);
    about["index_size"] = out.head().index_bytes();
    print_json(about);
    return kOk;
  }
  print_graph(path, header, fmt::format(", {} with out-neighbours", out.key_count()));
  print_weights(header);
  print_fact("codec", std::string(name_of(header.codec)));
  print_fact("pages",
             fmt::format("{} of {}", page_count_of(**pages), format_size(out.page_bytes())));
  print_fact("size", format_size(stored_bytes(header)));
  print_fact("index",
             fmt::format("{} in memory for a direction", format_size(out.head().index_bytes())));
  return kOk;
}

}  // namespace graphlane::cli
