#include <fmt/format.h>

#include <random>

#include "graphfmt/dual/dual_build.h"
#include "graphfmt/dual/dual_read.h"
#include "graphfmt/dual/dual_row.h"
#include "tests/graphfmt/stored_fixture.h"

namespace graphlane::graphfmt {
namespace {

std::vector<WeightedEdge> edges_at_random(uint64_t seed, size_t count, uint32_t vertex_max) {
  std::mt19937_64 random(seed);
  std::vector<WeightedEdge> edges;
  for (size_t i = 0; i < count; ++i) {
    const auto source = static_cast<uint32_t>(random() % (vertex_max + 1));
    const auto skewed =
        static_cast<uint32_t>(random() % (vertex_max + 1) * (random() % 1000) / 1000);
    edges.push_back({source, skewed, static_cast<float>(random() % 1000)});
  }
  return edges;
}

struct DualCase {
  const char* name;
  std::vector<WeightedEdge> edges;
  uint32_t partitions;
  uint64_t vertices = 0;
};

const std::vector<DualCase>& dual_cases() {
  static const std::vector<DualCase> cases = {
      {"OneVertex", {{0, 0, 1}}, 1},
      {"MoreIntervalsThanVertices", {{1, 0, 2}, {2, 2, 1}}, 7},
      {"IsolatedVertices", {{3, 90, 1}, {3, 2, 1}}, 4, 1000},
      {"SelfLoopsAndDuplicates",
       {{1, 1, 1}, {1, 2, 2}, {2, 1, 3}, {1, 2, 4}, {1, 1, 5}, {2, 2, 6}, {1, 2, 7}},
       2},
      {"Random", edges_at_random(1, 30'000, 999), 4},
      {"Sparse", edges_at_random(2, 2000, 50'000), 3},
      {"Dense", edges_at_random(3, 20'000, 20), 5},
  };
  return cases;
}

class DualTest : public StoredGraphTest {
 protected:
  DualOptions options_for(const DualCase& graph, bool is_weighted, CodecKind codec) const {
    return {.input = input_of(graph.edges, is_weighted, graph.vertices),
            .output = path("g"),
            .codec = codec,
            .partitions = graph.partitions,
            .run_edges = 1000};
  }

  static std::vector<ListedArc> stored_arcs(const Dual& dual, DualSide side) {
    CollectArcs sink;
    const auto done = scan_dual(dual, side, {.memory_budget_bytes = 1 << 16, .threads = 2}, sink);
    EXPECT_TRUE(done) << done.error().text;
    return sink.arcs;
  }
};

using DualParameters = std::tuple<size_t, CodecKind, bool, bool>;

class EachDualTest : public DualTest, public testing::WithParamInterface<DualParameters> {};

TEST_P(EachDualTest, HoldsTheArcsOfTheEdgeListInBothSides) {
  const auto& [row, codec, is_weighted, is_undirected] = GetParam();
  const DualCase& graph = dual_cases()[row];
  DualOptions options = options_for(graph, is_weighted, codec);
  options.input.undirected = is_undirected;
  const auto built = build_dual(options);
  ASSERT_TRUE(built) << built.error().text;
  EXPECT_EQ(names_in_dir(), (std::vector<std::string>{"edges.u32", "g"}));
  const auto dual = Dual::open(path("g"));
  ASSERT_TRUE(dual) << dual.error().text;
  const auto out = expected_arcs(graph.edges, Direction::kOut, is_weighted, is_undirected);
  EXPECT_EQ(stored_arcs(**dual, DualSide::kOut), out);
  EXPECT_EQ(stored_arcs(**dual, DualSide::kIn),
            expected_arcs(graph.edges, Direction::kIn, is_weighted, is_undirected));
  std::vector<uint32_t> degrees((*dual)->geometry().vertex_count());
  const auto told = (*dual)->read_degrees();
  ASSERT_TRUE(told);
  told->copy(0, degrees);
  for (const ListedArc& arc : out) --degrees[arc.vertex];
  EXPECT_EQ(degrees, std::vector<uint32_t>(degrees.size()));
  // Each block has the arcs between its two intervals.
  const DualGeometry& geometry = (*dual)->geometry();
  std::vector<uint64_t> counts(geometry.block_count());
  for (const ListedArc& arc : out) {
    ++counts[geometry.interval_of(arc.vertex) * uint64_t{geometry.partitions()} +
             geometry.interval_of(arc.neighbour)];
  }
  for (uint32_t own = 0; own < geometry.partitions(); ++own) {
    for (uint32_t other = 0; other < geometry.partitions(); ++other) {
      EXPECT_EQ((*dual)->block(DualSide::kOut, own, other).arc_count,
                counts[own * uint64_t{geometry.partitions()} + other]);
      EXPECT_EQ((*dual)->block(DualSide::kIn, other, own).arc_count,
                (*dual)
                    ->block(is_undirected ? DualSide::kIn : DualSide::kOut,
                            is_undirected ? other : own, is_undirected ? own : other)
                    .arc_count);
    }
  }
  const auto checked = check_dual(path("g"), 2);
  ASSERT_TRUE(checked) << checked.error().text;
  EXPECT_EQ(*checked, (*dual)->header());
}

std::string dual_row_name(const testing::TestParamInfo<DualParameters>& info) {
  const auto& [row, codec, is_weighted, is_undirected] = info.param;
  return fmt::format("{}{}{}{}", dual_cases()[row].name, name_of(codec),
                     is_weighted ? "Weighted" : "", is_undirected ? "Undirected" : "");
}

INSTANTIATE_TEST_SUITE_P(Graphs, EachDualTest,
                         testing::Combine(testing::Range(size_t{0}, dual_cases().size()),
                                          testing::Values(CodecKind::kRaw, CodecKind::kVarint,
                                                          CodecKind::kSimd, CodecKind::kReference),
                                          testing::Bool(), testing::Bool()),
                         dual_row_name);

TEST_F(DualTest, UndirectedIsStoredOnceAndItsInBlocksAreTheTurnedOutBlocks) {
  const DualCase graph{"", {{0, 3, 1}, {1, 2, 1}, {5, 0, 1}, {4, 4, 1}}, 3};
  DualOptions options = options_for(graph, false, CodecKind::kVarint);
  options.input.undirected = true;
  ASSERT_TRUE(build_dual(options));
  const auto files = files_of(path("g"));
  EXPECT_EQ(files.count("in.blocks"), 0u);
  const auto dual = Dual::open(path("g"));
  ASSERT_TRUE(dual);
  for (uint32_t i = 0; i < 3; ++i) {
    for (uint32_t j = 0; j < 3; ++j) {
      // In-block (i, j) is block (j, i) of the side `in`, and the same bytes as out-block (j, i).
      EXPECT_EQ((*dual)->block(DualSide::kIn, j, i).lists,
                (*dual)->block(DualSide::kOut, j, i).lists);
    }
  }
}

TEST_F(DualTest, WritesTheExampleOfTheFormatPage) {
  const DualCase graph{"", {{0, 1, 0}, {1, 3, 0}, {3, 0, 0}, {2, 2, 0}, {3, 3, 0}}, 2};
  ASSERT_TRUE(build_dual(options_for(graph, false, CodecKind::kVarint)));
  const auto files = files_of(path("g"));
  const auto block = [](char lists, const std::string& lengths, char bitmap,
                        const std::string& bytes) {
    std::string content(104, '\0');
    content[0] = 2;
    content[16] = 0x15;
    for (const size_t at : {8, 32, 40}) content[at] = lists;
    content[48] = bitmap;
    return content.replace(56, lengths.size(), lengths).replace(96, bytes.size(), bytes);
  };
  const std::string one(1, '\1'), zero(1, '\0');
  EXPECT_EQ(files.at("out.blocks"), block(1, one, 1, one) + block(1, one, 2, one) +
                                        block(1, one, 2, zero) +
                                        block(2, one + one, 3, zero + one));
  EXPECT_EQ(files.at("in.blocks"), block(1, one, 2, zero) + block(1, one, 1, one) +
                                       block(1, one, 2, one) + block(2, one + one, 3, zero + one));
  std::string table(208, '\0');
  for (size_t b = 0; b < 8; ++b) {
    const size_t at = b * 24 + (b < 4 ? 0 : 8);
    table[at] = 0x60;
    table[at + 8] = table[at + 16] = b % 4 == 3 ? 2 : 1;
  }
  table.replace(96, 4, std::string("\x00\xc3\x75\xe7", 4)).replace(200, 4, "\x4a\x4a\xd1\x57");
  EXPECT_EQ(files.at("blocks"), table);
  std::string degrees(40, '\0');
  EXPECT_EQ(files.at("degrees"), degrees.replace(0, 4, "\1\1\1\2"));
  std::string header(512, '\0');
  header.replace(0, 9, "Graphln\n\x01");
  header[12] = header[28] = 2;
  for (const size_t at : {16, 20}) header[at] = 1;
  header[33] = 0x10;
  header[36] = header[40] = 4;
  header[48] = header[56] = 5;
  header.replace(80, 10, "out.blocks")
      .replace(96, 2, "\xa0\x01")
      .replace(104, 4, "\xf3\x9d\x80\x3b");
  header.replace(112, 7, "degrees").replace(128, 1, "\x28").replace(136, 4, "\x1d\x96\xc8\x1c");
  header.replace(144, 9, "in.blocks")
      .replace(160, 2, "\xa0\x01")
      .replace(168, 4, "\x65\x53\xe5\xb7");
  header.replace(176, 6, "blocks").replace(192, 1, "\xd0").replace(200, 4, "\xc4\x90\xc1\x0f");
  header.replace(508, 4, "\xcc\x59\x8c\x42");
  EXPECT_EQ(files.at("graph"), header);
}

// With groups, those at the ends of batches are put together.
class DualFilesTest : public DualTest, public testing::WithParamInterface<CodecKind> {};

INSTANTIATE_TEST_SUITE_P(Codecs, DualFilesTest,
                         testing::Values(CodecKind::kSimd, CodecKind::kReference),
                         [](const auto& row) { return std::string(name_of(row.param)); });

TEST_P(DualFilesTest, DoNotDependOnThreadsRunsOrMemory) {
  const DualCase graph{"", edges_at_random(4, 200'000, 20'000), 4};
  DualOptions options = options_for(graph, true, GetParam());
  ASSERT_TRUE(build_dual(options));
  const auto expected = files_of(path("g"));
  options.overwrite = true;
  for (const unsigned threads : {1, 8}) {
    for (const uint64_t memory : {uint64_t{24} << 20, uint64_t{1} << 30}) {
      options.input.threads = threads;
      options.run_edges = threads == 1 ? 777 : 0;
      options.input.memory_budget_bytes = memory;
      const auto built = build_dual(options);
      ASSERT_TRUE(built) << built.error().text;
      ASSERT_EQ(files_of(path("g")), expected) << threads << " threads";
    }
  }
}

TEST_F(DualTest, RowsBeyondTheirMemoryAreSpilledAndComeBack) {
  for (const uint64_t memory : {0, 100, 1 << 20}) {
    DualRow row(dual_index_shape(CodecKind::kVarint, true), 2, path("row"), memory);
    std::string expected[2];
    for (uint8_t v = 0; v < 200; ++v) {
      const uint8_t list[] = {v, static_cast<uint8_t>(v + 1)};
      row.append(v % 2, v, 1, list, {});
      expected[v % 2].append(reinterpret_cast<const char*>(list), sizeof list);
      ASSERT_TRUE(row.keep_limit());
    }
    EXPECT_EQ(std::filesystem::exists(path("row")), memory < 400);
    for (uint32_t other = 0; other < 2; ++other) {
      std::string got;
      ASSERT_TRUE(row.block(other).lists.drain(
          row.spill_file(), [&](const void* data, size_t length) -> Outcome<void> {
            got.append(static_cast<const char*>(data), length);
            return {};
          }));
      EXPECT_EQ(got, expected[other]);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path("row")));
}

TEST_F(DualTest, EveryFlippedBitAndEveryTruncationIsAnErrorThatNamesTheFile) {
  for (const CodecKind codec :
       {CodecKind::kRaw, CodecKind::kVarint, CodecKind::kSimd, CodecKind::kReference}) {
    DualOptions options =
        options_for({"", edges_at_random(6, 40, 9), 2, 12}, codec != CodecKind::kVarint, codec);
    options.overwrite = true;
    ASSERT_TRUE(build_dual(options));
    expect_damage_is_noticed([](const std::string& graph) { return check_dual(graph, 1); });
  }
}

TEST_F(DualTest, ReplacesOnlyAStoredGraphAndABadListLeavesNothing) {
  DualOptions options = options_for(dual_cases()[1], false, CodecKind::kRaw);
  std::filesystem::create_directory(path("g"));
  write("g/mine", "mine");
  EXPECT_EQ(build_dual(options).error().code, EEXIST);
  options.overwrite = true;
  EXPECT_EQ(build_dual(options).error().text,
            path("g") + ": not a stored graph, so it is not overwritten");
  std::filesystem::remove_all(path("g"));
  write("edges.u32", "1234567");
  EXPECT_FALSE(build_dual(options));
  EXPECT_EQ(names_in_dir(), std::vector<std::string>{"edges.u32"});
  options.partitions = kDualPartitionsMax + 1;
  EXPECT_EQ(build_dual(options).error().code, EINVAL);
}

TEST_F(DualTest, ChoosesIntervalsThatFitTheBudget) {
  EXPECT_EQ(dual_partitions(1000, 5000, 1 << 20), 1u);
  EXPECT_EQ(dual_partitions(1 << 20, 16 << 20, uint64_t{8} << 30), 1u);
  // 42 million vertices, 1.5 billion arcs in 1 GiB: an average block has 4 · arcs / P² bytes, two
  // intervals 32 · V / P.
  const uint32_t p = dual_partitions(42'000'000, 1'500'000'000, uint64_t{1} << 30);
  EXPECT_LE(4.0 * 1.5e9 / p / p + 32.0 * 42e6 / p, (uint64_t{1} << 30) / 4);
}

}  // namespace
}  // namespace graphlane::graphfmt
