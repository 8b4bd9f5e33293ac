#include "graphfmt/lists/lists_build.h"

#include <fmt/format.h>

#include <random>

#include "graphfmt/lists/lists_read.h"
#include "tests/graphfmt/stored_fixture.h"

namespace graphlane::graphfmt {
namespace {

struct BuildCase {
  const char* name;
  std::vector<WeightedEdge> edges;
  uint64_t vertices = 0;
};

std::vector<WeightedEdge> random_edges(uint64_t seed, size_t count, uint32_t vertex_max,
                                       bool skewed) {
  std::mt19937_64 random(seed);
  std::vector<WeightedEdge> edges;
  const auto vertex = [&] {
    const uint64_t v = random() % (uint64_t{vertex_max} + 1);
    return static_cast<uint32_t>(skewed ? v * v / (uint64_t{vertex_max} + 1) : v);
  };
  for (size_t i = 0; i < count; ++i) {
    const uint32_t source = vertex();
    edges.push_back({source, vertex(), static_cast<float>(random() % 1000)});
  }
  return edges;
}

std::vector<WeightedEdge> star(uint32_t leaves) {
  std::vector<WeightedEdge> edges;
  for (uint32_t leaf = leaves; leaf > 0; --leaf) {
    edges.push_back({0, leaf, static_cast<float>(leaf)});
  }
  return edges;
}

const std::vector<BuildCase>& build_cases() {
  static const std::vector<BuildCase> cases = {
      {"OneVertex", {{0, 0, 1}}},
      {"OneEdge", {{1, 0, 2}}},
      {"IsolatedVertices", {{3, 90, 1}, {3, 2, 1}}, 1000},
      {"SelfLoopsAndDuplicates",
       {{1, 1, 1}, {1, 2, 2}, {2, 1, 3}, {1, 2, 4}, {1, 1, 5}, {2, 2, 6}, {1, 2, 7}}},
      {"Star", star(20'000)},
      {"Random", random_edges(1, 30'000, 999, false)},
      {"Skewed", random_edges(2, 30'000, 5000, true)},
      {"Dense", random_edges(3, 20'000, 20, false)},
  };
  return cases;
}

class ListsBuildTest : public StoredGraphTest {
 protected:
  ListsOptions options_for(const BuildCase& graph, bool is_weighted, CodecKind codec) const {
    return {.input = input_of(graph.edges, is_weighted, graph.vertices),
            .output = path("g"),
            .codec = codec,
            .run_edges = 1000};
  }

  static std::vector<ListedArc> stored_arcs(const Lists& lists, Direction direction) {
    CollectArcs sink;
    const auto done =
        scan_lists(lists, direction, {.memory_budget_bytes = 1 << 16, .threads = 2}, sink);
    EXPECT_TRUE(done) << done.error().text;
    return sink.arcs;
  }
};

using BuildRow = std::tuple<size_t, CodecKind, bool, bool, bool>;

class EachListsBuildTest : public ListsBuildTest, public testing::WithParamInterface<BuildRow> {};

TEST_P(EachListsBuildTest, HoldsTheArcsOfTheEdgeListSorted) {
  const auto& [row, codec, is_weighted, is_undirected, is_simple] = GetParam();
  const BuildCase& graph = build_cases()[row];
  ListsOptions options = options_for(graph, is_weighted, codec);
  options.input.undirected = is_undirected;
  options.input.simple = is_simple;
  const auto built = build_lists(options);
  ASSERT_TRUE(built) << built.error().text;
  EXPECT_EQ(names_in_dir(), (std::vector<std::string>{"edges.u32", "g"}));
  const auto lists = Lists::open(path("g"));
  ASSERT_TRUE(lists) << lists.error().text;
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    const auto expected =
        expected_arcs(graph.edges, direction, is_weighted, is_undirected, is_simple);
    ASSERT_EQ(stored_arcs(**lists, direction), expected);
    ASSERT_EQ((*lists)->header().arc_count, expected.size());
  }
  const auto checked = check_lists(path("g"), 2);
  ASSERT_TRUE(checked) << checked.error().text;
  EXPECT_EQ(*checked, (*lists)->header());
  uint64_t largest = 0;
  for (const WeightedEdge& edge : graph.edges) {
    largest = std::max<uint64_t>({largest, edge.source, edge.target});
  }
  EXPECT_EQ(checked->vertex_count, graph.vertices != 0 ? graph.vertices : largest + 1);
  // Back to an edge list: the same edges.
  Collect back;
  const auto read = read_lists({.path = path("g"), .weighted = is_weighted, .threads = 2}, back);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->vertex_count, checked->vertex_count);
  auto edges = expected_arcs(graph.edges, Direction::kOut, is_weighted, is_undirected, is_simple);
  if (is_undirected) {
    std::erase_if(edges, [](const ListedArc& arc) { return arc.neighbour < arc.vertex; });
  }
  std::string records;
  for (const ListedArc& arc : edges) {
    const WeightedEdge edge{arc.vertex, arc.neighbour, arc.weight};
    records.append(reinterpret_cast<const char*>(&edge), edge_size_bytes(is_weighted));
  }
  EXPECT_EQ(back.records, records);
}

std::string build_row_name(const testing::TestParamInfo<BuildRow>& info) {
  const auto& [row, codec, is_weighted, is_undirected, is_simple] = info.param;
  return fmt::format("{}{}{}{}{}", build_cases()[row].name, name_of(codec),
                     is_weighted ? "Weighted" : "", is_undirected ? "Undirected" : "",
                     is_simple ? "Simple" : "");
}

INSTANTIATE_TEST_SUITE_P(Graphs, EachListsBuildTest,
                         testing::Combine(testing::Range(size_t{0}, build_cases().size()),
                                          testing::Values(CodecKind::kRaw, CodecKind::kVarint,
                                                          CodecKind::kSimd),
                                          testing::Bool(), testing::Bool(), testing::Bool()),
                         build_row_name);

TEST_F(ListsBuildTest, WritesTheExampleOfTheFormatPage) {
  const BuildCase graph{"", {{0, 1, 0}, {1, 3, 0}, {3, 0, 0}, {2, 2, 0}, {3, 3, 0}}};
  ASSERT_TRUE(build_lists(options_for(graph, false, CodecKind::kVarint)));
  const auto files = files_of(path("g"));
  EXPECT_EQ(files.at("out.lists"), std::string("\x01\x03\x02\x00\x83", 5));
  EXPECT_EQ(files.at("in.lists"), std::string("\x03\x00\x02\x01\x82", 5));
  std::string index(152, '\0');
  for (const size_t at : {0, 8}) index[at] = 4;
  index[16] = 6;
  for (const size_t at : {32, 40, 128}) index[at] = 5;
  for (const size_t at : {48, 88}) index.replace(at, 4, "\x01\x01\x01\x02");
  index.replace(144, 4, "\x21\x0a\x88\xc1");
  EXPECT_EQ(files.at("out.index"), index);
  std::string header(512, '\0');
  header.replace(0, 9, "Graphln\n\x01");
  for (const size_t at : {12, 16, 20}) header[at] = 1;
  header[33] = 0x10;
  header[36] = header[40] = 4;
  header[48] = header[56] = 5;
  header.replace(80, 9, "out.lists").replace(96, 1, "\x05").replace(104, 4, "\xba\x05\x08\x62");
  header.replace(112, 9, "out.index").replace(128, 1, "\x98").replace(136, 4, "\xe7\xb8\x4a\x72");
  header.replace(144, 8, "in.lists").replace(160, 1, "\x05").replace(168, 4, "\x07\x5c\xfc\x83");
  header.replace(176, 8, "in.index").replace(192, 1, "\x98").replace(200, 4, "\x90\x19\x14\x7f");
  header.replace(508, 4, "\xa9\x2f\x0d\xd9");
  EXPECT_EQ(files.at("graph"), header);
}

TEST_F(ListsBuildTest, WritesTheWeightsOfTheFormatPage) {
  const BuildCase graph{"",
                        {{0, 1, 0.5f}, {1, 3, 2}, {3, 0, -7.25f}, {2, 2, 0.001f}, {3, 3, 0.5f}}};
  ASSERT_TRUE(build_lists(options_for(graph, true, CodecKind::kVarint)));
  const auto files = files_of(path("g"));
  const std::string codes("\x46\x9e\x08\x39\xc5\x01\x00\x46\x1e", 9);
  EXPECT_EQ(files.at("out.weights"), codes);
  std::string table(32, '\0');
  table.replace(8, 10, "\xae\xe3\xff\xff\xff\xff\xff\xff\x03\x0e");
  table.replace(24, 4, "\x9b\x29\xaf\xea");
  EXPECT_EQ(files.at("out.index").substr(168), table);
  EXPECT_EQ(files.at("graph")[8], 2);
  EXPECT_EQ(files.at("graph")[64], 18);
}

TEST_F(ListsBuildTest, FilesDoNotDependOnThreadsRunsOrMemory) {
  const BuildCase graph{"", random_edges(4, 200'000, 20'000, true)};
  ListsOptions options = options_for(graph, true, CodecKind::kSimd);
  ASSERT_TRUE(build_lists(options));
  const auto expected = files_of(path("g"));
  options.overwrite = true;
  for (const unsigned threads : {1, 3, 8}) {
    for (const size_t run_edges : {size_t{777}, size_t{50'000}, size_t{0}}) {
      for (const uint64_t memory : {uint64_t{24} << 20, uint64_t{1} << 30}) {
        options.input.threads = threads;
        options.run_edges = run_edges;
        options.input.memory_budget_bytes = memory;
        const auto built = build_lists(options);
        ASSERT_TRUE(built) << built.error().text;
        ASSERT_EQ(files_of(path("g")), expected) << threads << " threads, runs of " << run_edges;
      }
    }
  }
}

TEST_F(ListsBuildTest, SpillsBeyondTheBudget) {
  const BuildCase graph{"", random_edges(5, 3'000'000, 4'000'000, false)};
  ListsOptions options = options_for(graph, true, CodecKind::kVarint);
  options.run_edges = 0;
  const auto in_memory = build_lists(options);
  ASSERT_TRUE(in_memory) << in_memory.error().text;
  const auto expected = files_of(path("g"));
  options.overwrite = true;
  options.input.memory_budget_bytes = 24 << 20;
  const auto spilled = build_lists(options);
  ASSERT_TRUE(spilled) << spilled.error().text;
  EXPECT_GT(spilled->spilled_bytes, 0u);
  EXPECT_EQ(files_of(path("g")), expected);
}

TEST_F(ListsBuildTest, TooLittleMemorySaysHowMuchIsEnough) {
  ListsOptions options = options_for(build_cases()[0], false, CodecKind::kRaw);
  options.input.memory_budget_bytes = 1 << 20;
  const auto refused = build_lists(options);
  ASSERT_FALSE(refused);
  unsigned needed = 0;
  ASSERT_EQ(std::sscanf(refused.error().text.c_str(),
                        "a memory budget of 1M: too small, sorting needs %uM", &needed),
            1)
      << refused.error().text;
  options.input.memory_budget_bytes = uint64_t{needed} << 20;
  EXPECT_TRUE(build_lists(options));
}

TEST_F(ListsBuildTest, ReplacesOnlyAStoredGraph) {
  ListsOptions options = options_for(build_cases()[1], false, CodecKind::kRaw);
  std::filesystem::create_directory(path("g"));
  write("g/mine", "mine");
  EXPECT_EQ(build_lists(options).error().code, EEXIST);
  options.overwrite = true;
  EXPECT_EQ(build_lists(options).error().text,
            path("g") + ": not a stored graph, so it is not overwritten");
  std::filesystem::remove(path("g/mine"));
  ASSERT_TRUE(build_lists(options));
  options.codec = CodecKind::kSimd;
  ASSERT_TRUE(build_lists(options));
  EXPECT_EQ((*Lists::open(path("g")))->header().codec, CodecKind::kSimd);
}

TEST_F(ListsBuildTest, ABadEdgeListLeavesNothing) {
  ListsOptions options = options_for(build_cases()[1], false, CodecKind::kRaw);
  write("edges.u32", "1234567");
  EXPECT_FALSE(build_lists(options));
  EXPECT_EQ(names_in_dir(), std::vector<std::string>{"edges.u32"});
}

// A graph of every kind of list, small enough to flip each of its bits.
TEST_F(ListsBuildTest, EveryFlippedBitAndEveryTruncationIsAnErrorThatNamesTheFile) {
  for (const CodecKind codec : {CodecKind::kRaw, CodecKind::kVarint, CodecKind::kSimd}) {
    ListsOptions options = options_for({"", random_edges(6, 40, 9, true), 12}, true, codec);
    options.overwrite = true;
    ASSERT_TRUE(build_lists(options));
    expect_damage_is_noticed([](const std::string& graph) { return check_lists(graph, 1); });
  }
}

TEST_F(ListsBuildTest, AStarOfAMillionIsOneList) {
  ListsOptions options = options_for({"", star(1'000'000)}, false, CodecKind::kVarint);
  options.run_edges = 0;
  const auto built = build_lists(options);
  ASSERT_TRUE(built) << built.error().text;
  const auto lists = Lists::open(path("g"));
  ASSERT_TRUE(lists);
  EXPECT_EQ((*lists)->index(Direction::kOut).degree(0), 1'000'000u);
  EXPECT_EQ((*lists)->index(Direction::kIn).degree(1'000'000), 1u);
  EXPECT_TRUE(check_lists(path("g")));
}

// Its index is sparse: an eighth of a byte a vertex, not one and a quarter.
TEST_F(ListsBuildTest, TheLargestVertexCosts600MiBOfIndex) {
  const BuildCase graph{
      "", {{kListVertexMax, 0, 1}, {7, kListVertexMax, 2}, {kListVertexMax, kListVertexMax, 3}}};
  ASSERT_TRUE(build_lists(options_for(graph, false, CodecKind::kVarint)));
  const auto lists = Lists::open(path("g"));
  ASSERT_TRUE(lists) << lists.error().text;
  EXPECT_LT((*lists)->index_bytes(Direction::kOut), uint64_t{kListVertexMax} / 7);
  EXPECT_EQ((*lists)->index(Direction::kOut).degree(kListVertexMax), 2u);
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    EXPECT_EQ(stored_arcs(**lists, direction),
              expected_arcs(graph.edges, direction, false, false, false));
  }
}

// The real graphs, where they are: GRAPHLANE_TEST_DATA.
TEST_F(ListsBuildTest, RealGraphsComeBack) {
  const char* const data = std::getenv("GRAPHLANE_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "GRAPHLANE_TEST_DATA is not set";
  for (const std::string name : {"cnr-2000", "gowalla"}) {
    ASSERT_EQ(
        std::system(fmt::format("xz -dc {}/{}.u32.xz >{}", data, name, path("edges.u32")).c_str()),
        0);
    const std::string edges = read(path("edges.u32"));
    for (const CodecKind codec : {CodecKind::kRaw, CodecKind::kVarint, CodecKind::kSimd}) {
      const auto built =
          build_lists({.input = {.path = path("edges.u32"), .format = EdgeFormat::kU32},
                       .output = path("g"),
                       .codec = codec,
                       .overwrite = true});
      ASSERT_TRUE(built) << built.error().text;
      fmt::print("{} {}: {:.2f} bits an arc\n", name, name_of(codec), built->bits_an_arc(true));
      Collect back;
      ASSERT_TRUE(read_lists({.path = path("g")}, back));
      ASSERT_TRUE(back.records == edges) << name;  // the data are sorted by source and target
    }
  }
}

}  // namespace
}  // namespace graphlane::graphfmt
