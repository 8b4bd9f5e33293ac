#include "cli/convert_pages.h"

#include "cli/convert_lists.h"
#include "iomgr/base/size.h"

namespace graphlane::cli {
namespace {

// The pages of both directions.
uint64_t page_count_of(const Pages& pages) {
  const uint64_t out = pages.store(Direction::kOut).page_count();
  return pages.header().is_directed ? out + pages.store(Direction::kIn).page_count() : out;
}

}  // namespace

Outcome<std::vector<std::string>> convert_to_pages(const ToPages& options) {
  const Outcome<CodecKind> codec = parse_codec(options.codec);
  if (!codec) return codec.error();
  const uint64_t page_bytes = options.page_bytes.value_or(kPageBytesUsual);
  if (!is_page_size(page_bytes)) {
    return make_error(EINVAL, "--page {}: a multiple of 4K up to 1M is expected", page_bytes);
  }
  Outcome<PagesSummary> built = build_pages({.input = options.input,
                                             .output = options.path,
                                             .codec = *codec,
                                             .page_bytes = static_cast<uint32_t>(page_bytes),
                                             .overwrite = options.overwrite});
  if (!built) return built.error();
  if (!quiet) {
    fmt::print("{}: {} vertices, {} edges, {}, codec {}, {} pages of {}, {}\n", options.shown, built->vertex_count,
               built->edge_count, direction_of(!options.input.undirected), name_of(*codec), built->page_count,
               format_size(page_bytes), format_size(built->output_bytes));
  }
  return std::move(built->notes);
}

Outcome<int> show_pages(const std::string& path, bool as_json) {
  const auto pages = Pages::open(path);
  if (!pages) return pages.error();
  const GraphHeader& header = (*pages)->header();
  const PageStore& out = (*pages)->store(Direction::kOut);
  uint64_t bytes = kGraphHeaderBytes;
  for (const GraphHeader::File& file : header.files) bytes += file.size_bytes;
  if (as_json) {
    print_json({{"path", path},
                {"format", std::string(name_of(header.kind))},
                {"vertices", header.vertex_count},
                {"edges", header.edge_count},
                {"arcs", header.arc_count},
                {"directed", header.is_directed},
                {"weights", std::string(name_of(header.weight))},
                {"codec", std::string(name_of(header.codec))},
                {"keys", out.key_count()},
                {"pages", page_count_of(**pages)},
                {"page_size", out.page_bytes()},
                {"size", bytes},
                {"index_size", out.head().index_bytes()}});
    return kOk;
  }
  const auto line = [](std::string_view key, const std::string& text) { fmt::print("{:<14}{}\n", key, text); };
  line("path", path);
  line("format", std::string(name_of(header.kind)));
  line("vertices", fmt::format("{}, {} with out-neighbours", header.vertex_count, out.key_count()));
  line("edges", fmt::format("{}, {}", header.edge_count, direction_of(header.is_directed)));
  line("weights", std::string(name_of(header.weight)));
  line("codec", std::string(name_of(header.codec)));
  line("pages", fmt::format("{} of {}", page_count_of(**pages), format_size(out.page_bytes())));
  line("size", format_size(bytes));
  line("index", fmt::format("{} in memory for a direction", format_size(out.head().index_bytes())));
  return kOk;
}

}  // namespace graphlane::cli
