// Edge lists of all formats, a grid's meta and tables, headers of stored graphs.
#include <array>
#include <cstring>
#include <iterator>
#include <string>

#include "graphfmt/edge_list.h"
#include "graphfmt/graph_header.h"
#include "graphfmt/grid/grid_files.h"
#include "iomgr/base/crc32c.h"
#include "tests/fuzz/target.h"

namespace graphlane::fuzz {
namespace {

std::string string_of(Bytes input) { return {input.begin(), input.end()}; }

void require_one_line(const Error& error) {
  require(error.code != 0 && !error.text.empty() && error.text.find('\n') == std::string::npos);
}

class CountingSink final : public EdgeSink {
 public:
  Outcome<void> take(EdgeBatch& batch) override {
    count += batch.edge_count;
    return {};
  }
  uint64_t count = 0;
};

// The first byte says the format and how it is read.
void run_edge_list(Bytes input) {
  if (input.empty()) return;
  static constexpr EdgeFormat kFormats[] = {EdgeFormat::kAuto, EdgeFormat::kSnap, EdgeFormat::kBin,
                                            EdgeFormat::kU32, EdgeFormat::kU64, EdgeFormat::kCsv,
                                            EdgeFormat::kTsv, EdgeFormat::kMtx, EdgeFormat::kKonect,
                                            EdgeFormat::kDimacs, EdgeFormat::kMetis};
  const InputFile file(input.subspan(1));
  EdgeListOptions options;
  options.path = file.path();
  options.format = kFormats[(input[0] & 15) % std::size(kFormats)];
  options.weighted = (input[0] & 16) != 0;
  options.undirected = (input[0] & 32) != 0;
  options.as_given = (input[0] & 64) != 0;
  options.memory_budget_bytes = uint64_t{8} << 20;
  options.threads = 1;
  CountingSink sink;
  const Outcome<EdgeListSummary> summary = read_edges(options, sink);
  if (!summary) return require_one_line(summary.error());
  require(summary->edge_count == sink.count);
}

void run_grid_meta(Bytes input) {
  const Outcome<GridInfo> info = parse_grid_meta(string_of(input), "meta");
  if (!info) return require_one_line(info.error());
  require(info->partitions > 0);
}

// A meta that is good, and a table.
void run_grid_table(Bytes input) {
  GridInfo info{};
  info.partitions = 2;
  info.edge_count = 100;
  const auto table = parse_offset_table(string_of(input), info, "column_offset");
  if (!table) return require_one_line(table.error());
  require(table->size() == 5);
}

// As it is, and within a header that has its checksum.
void run_graph_header(Bytes input) {
  GraphHeader like;
  like.vertex_count = like.arc_count = like.edge_count = 10;
  like.files = {{.name = "out", .size_bytes = 100, .checksum = 1}, {.name = "out.index", .size_bytes = 64, .checksum = 2}};
  std::array<uint8_t, kGraphHeaderBytes> mended = encode_header(like);
  for (size_t i = 0; i + 1 < input.size(); i += 2) {  // pairs: by how much to go on, and a byte
    const size_t at = 8 + (input[i] * 7 + i) % (mended.size() - 12);
    mended[at] = input[i + 1];
  }
  const uint32_t sum = crc32c(mended.data(), mended.size() - sizeof(uint32_t));
  std::memcpy(&mended[mended.size() - sizeof sum], &sum, sizeof sum);
  const std::string texts[] = {string_of(input), {mended.begin(), mended.end()}};
  for (const std::string& text : texts) {
    const Outcome<GraphHeader> header = parse_header(text, "graph");
    if (!header) {
      require_one_line(header.error());
      continue;
    }
    const auto again = encode_header(*header);
    const auto parsed = parse_header({reinterpret_cast<const char*>(again.data()), again.size()}, "graph");
    require(parsed && *parsed == *header);
  }
}

constexpr FuzzTarget kGraphTargets[] = {{"edge_list", run_edge_list},
                                   {"grid_meta", run_grid_meta},
                                   {"grid_table", run_grid_table},
                                   {"graph_header", run_graph_header}};

}  // namespace

std::span<const FuzzTarget> graph_targets() { return kGraphTargets; }

}  // namespace graphlane::fuzz
