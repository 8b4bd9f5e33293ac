// Edge lists of all formats, a grid's meta and tables, headers of stored graphs.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "graphfmt/codec/codec.h"
#include "graphfmt/codec/weight_codec.h"
#include "graphfmt/edge_list.h"
#include "graphfmt/graph_header.h"
#include "graphfmt/grid/grid_files.h"
#include "graphfmt/list_index.h"
#include "iomgr/base/crc32c.h"
#include "tests/fuzz/target.h"

namespace graphlane::fuzz {
using namespace graphfmt;
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

// The first byte chooses the format and the options.
void run_edge_list(Bytes input) {
  if (input.empty()) return;
  static constexpr EdgeFormat kFormats[] = {
      EdgeFormat::kAuto,   EdgeFormat::kSnap,   EdgeFormat::kBin,  EdgeFormat::kU32,
      EdgeFormat::kU64,    EdgeFormat::kCsv,    EdgeFormat::kTsv,  EdgeFormat::kMtx,
      EdgeFormat::kKonect, EdgeFormat::kDimacs, EdgeFormat::kMetis};
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

// The input itself, and the input within a header with the right checksum.
void run_graph_header(Bytes input) {
  GraphHeader like;
  like.vertex_count = like.arc_count = like.edge_count = 10;
  like.files = {{.name = "out", .size_bytes = 100, .checksum = 1},
                {.name = "out.index", .size_bytes = 64, .checksum = 2}};
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
    const auto parsed =
        parse_header({reinterpret_cast<const char*>(again.data()), again.size()}, "graph");
    require(parsed && *parsed == *header);
  }
}

// The first byte chooses the shape. An accepted index has all its lists within the file.
void run_list_index(Bytes input) {
  if (input.size() < 2) return;
  const ListIndexShape shape{.is_sparse = (input[0] & 1) != 0,
                             .has_degrees = (input[0] & 2) != 0,
                             .has_lengths = (input[0] & 4) != 0,
                             .has_arc_starts = (input[0] & 8) != 0,
                             .is_derived = (input[0] & 16) != 0,
                             .has_groups = (input[0] & 0x35) == 0x35};
  if (!shape.has_lengths && (!shape.has_degrees || !shape.has_arc_starts)) return;
  std::vector<uint64_t> aligned((input.size() + 6) / 8);
  std::memcpy(aligned.data(), input.data() + 1, input.size() - 1);
  std::span<const uint8_t> rest(reinterpret_cast<const uint8_t*>(aligned.data()), input.size() - 1);
  const auto index = ListIndex::parse(rest, shape, "index");
  if (!index) return require_one_line(index.error());
  uint64_t end = 0;
  index->scan(0, index->vertex_count(), [&](uint32_t vertex, const ListPlace& place, uint64_t) {
    // The lists of a group have one place.
    if (!shape.has_groups || place.offset + place.length_bytes != end) {
      require(place.offset == end);
      end += place.length_bytes;
    }
    require(index->place(vertex) == place);
  });
  require(end == index->lists_bytes() && index->offset(index->vertex_count()) == end);
}

// The first byte chooses the codec, the second the limit. An accepted list is below it, and each
// way to decode agrees.
void run_list_codec(Bytes input) {
  if (input.size() < 2) return;
  const ListCodec& codec = ListCodec::of(static_cast<CodecKind>(input[0] % 3));
  const uint64_t limit = uint64_t{1} << input[1] % 33;
  const Bytes bytes = input.subspan(2);
  const Result<size_t> count = codec.count(bytes);
  if (!count) return;
  require(*count <= bytes.size());
  std::vector<uint32_t> list(*count);
  if (!codec.decode(bytes, list, limit)) return;
  for (const uint32_t neighbour : list) require(neighbour < limit);
  // Bytes that no encoder writes may be refused by one way and accepted by another, but then they
  // are the same list.
  std::vector<uint8_t> again(codec.bytes_max(list.size()));
  again.resize(std::is_sorted(list.begin(), list.end()) ? codec.encode(list, again.data()) : 0);
  const bool is_encoded =
      !bytes.empty() && std::equal(again.begin(), again.end(), bytes.begin(), bytes.end());
  const uint32_t length = static_cast<uint32_t>(bytes.size()),
                 degree = static_cast<uint32_t>(*count);
  std::vector<uint32_t> together(*count);
  const bool is_list =
      codec.decode_lists(bytes, {&length, 1}, {&degree, 1}, together, limit).has_value();
  require(is_list ? together == list : !is_encoded);
  std::vector<uint32_t> counted(bytes.size()), starts(2);
  const Result<size_t> total = codec.decode_counted(bytes, {&length, 1}, starts, counted, limit);
  if (!total) return require(!is_encoded);
  require(*total == *count && starts[0] == 0 && starts[1] == *total);
  require(std::equal(list.begin(), list.end(), counted.begin()));
}

// Bytes: the limit, the number of vertices, and by how much each goes on; then the group. What is
// accepted is below the limit, and comes back when its lists are encoded again.
void run_list_group(Bytes input) {
  if (input.size() < 2) return;
  const ListCodec& codec = ListCodec::of(CodecKind::kReference);
  const uint64_t limit = uint64_t{1} << input[0] % 21;
  const size_t count = 1 + input[1] % kIndexGroupVertices;
  input = input.subspan(2);
  if (input.size() < count) return;
  std::vector<uint32_t> vertices, starts(1), neighbours;
  for (size_t i = 0; i < count; ++i) {
    vertices.push_back(i == 0 ? input[i] % 32 : vertices.back() + 1 + input[i] % 3);
  }
  const uint64_t arcs_max = 1 << 20;
  if (!codec.decode_group(input.subspan(count), vertices, limit, arcs_max, starts, neighbours)) {
    return;
  }
  require(starts.size() == count + 1 && starts.back() <= arcs_max);
  std::vector<VertexList> lists;
  size_t bytes_max = 0;
  bool is_ascending = true;
  for (size_t i = 0; i < count; ++i) {
    const std::span<const uint32_t> list(neighbours.data() + starts[i], starts[i + 1] - starts[i]);
    require(!list.empty());
    for (const uint32_t neighbour : list) require(neighbour < limit);
    is_ascending &= std::is_sorted(list.begin(), list.end());
    lists.push_back({vertices[i], list});
    bytes_max += codec.bytes_max(list.size());
  }
  // Damaged intervals may overlap what is copied. Then numbers do not ascend, and no encoder gets
  // such lists.
  if (!is_ascending || starts.back() > 4096) return;
  std::vector<uint8_t> bytes(bytes_max);
  bytes.resize(codec.encode_group(lists, bytes.data()));
  std::vector<uint32_t> starts_again(1), again;
  require(codec.decode_group(bytes, vertices, limit, arcs_max, starts_again, again).has_value() &&
          starts_again == starts);
  require(std::equal(again.begin(), again.begin() + starts.back(), neighbours.begin()));
}

// The first byte chooses the type, the second how many arcs. An accepted table gives any arcs' place
// within the codes, and decodes any bytes there.
void run_weight_table(Bytes input) {
  if (input.size() < 2) return;
  const auto kind = static_cast<WeightKind>(1 + input[0] % 3);
  const uint64_t arcs = uint64_t{input[1]} * 100;
  Bytes rest = input.subspan(2);
  const auto table = WeightTable::parse(rest, kind, arcs, "index", input.size());
  if (!table) return require_one_line(table.error());
  require(table->bytes() <= arcs * weight_bytes(kind) + 64);
  std::vector<uint8_t> codes(table->bytes());
  for (size_t i = 0; i < codes.size() && !rest.empty(); ++i) codes[i] = rest[i % rest.size()];
  for (const uint64_t first : {uint64_t{0}, arcs / 3, arcs - arcs % 7}) {
    const ByteRange range = table->range(first, arcs - first);
    require(range.end() <= codes.size());
    const std::vector<uint8_t> exactly(codes.begin() + static_cast<ptrdiff_t>(range.offset),
                                       codes.begin() + static_cast<ptrdiff_t>(range.end()));
    std::vector<double> weights(arcs - first);
    (void)table->decode(first, weights, exactly.data());
  }
}

// The first byte chooses the type; the others are weights, which come back bit for bit, or what is
// taken for those of a value.
void run_weights(Bytes input) {
  if (input.empty()) return;
  const auto kind = static_cast<WeightKind>(1 + input[0] % 3);
  const size_t size = weight_bytes(kind), count = (input.size() - 1) / size;
  const Bytes weights = input.subspan(1, count * size);
  WeightWriter writer(kind);
  std::vector<uint8_t> codes;
  writer.append(weights, codes);
  writer.finish(codes);
  const std::vector<uint8_t> stored = writer.table();
  Bytes rest(stored);
  const auto table = WeightTable::parse(rest, kind, count, "index", stored.size());
  require(table && table->bytes() == codes.size());
  std::vector<uint64_t> back(input.size());
  auto* const bytes = reinterpret_cast<uint8_t*>(back.data());
  require(table->decode_stored(0, count, bytes, codes.data()).has_value());
  require(std::equal(weights.begin(), weights.end(), bytes));
  for (const uint64_t arcs : {uint64_t{1}, uint64_t{17}, uint64_t{200}}) {
    const auto value = parse_value_weights(kind, input.subspan(1), arcs);
    if (!value) continue;
    back.resize(arcs);
    decode_value_weights(kind, *value, arcs, reinterpret_cast<uint8_t*>(back.data()));
    (void)value_weight(kind, *value, arcs - 1);
  }
}

// A shard's lists; the bytes up to the first 0xff are the count of vertices.
void run_shards(Bytes input) {
  static const WorkDirectory& directory = *[] {
    static WorkDirectory made;
    made.write("g.1.intervals", {});
    return &made;
  }();
  const auto end = std::find(input.begin(), input.end(), 0xff);
  const auto count = static_cast<size_t>(end - input.begin());
  directory.write("g.numvertices", input.first(count));
  directory.write("g.edata_azv.0_1.adj", input.subspan(std::min(count + 1, input.size())));
  EdgeListOptions options;
  options.path = directory.path();
  options.format = EdgeFormat::kShards;
  options.memory_budget_bytes = uint64_t{8} << 20;
  options.threads = 1;
  CountingSink sink;
  const Outcome<EdgeListSummary> summary = read_edges(options, sink);
  if (!summary) return require_one_line(summary.error());
  require(summary->edge_count == sink.count);
}

constexpr FuzzTarget kGraphTargets[] = {
    {"edge_list", run_edge_list},       {"grid_meta", run_grid_meta},
    {"grid_table", run_grid_table},     {"graph_header", run_graph_header},
    {"list_index", run_list_index},     {"list_codec", run_list_codec},
    {"list_group", run_list_group},     {"shards", run_shards},
    {"weight_table", run_weight_table}, {"weights", run_weights}};

}  // namespace

std::span<const FuzzTarget> graph_targets() { return kGraphTargets; }

}  // namespace graphlane::fuzz
