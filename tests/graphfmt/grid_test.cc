#include "graphfmt/grid/grid.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <random>

#include "graphfmt/grid/grid_layout.h"
#include "graphfmt/rmat.h"
#include "iomgr/base/fd.h"
#include "tests/graphfmt/fixture.h"

namespace graphlane::graphfmt {
namespace {

namespace fs = std::filesystem;

// GridGraph's rule in its simplest form: V vertices are dealt out in order, to the larger
// partitions first.
std::vector<uint32_t> model_partitions(uint32_t vertex_count, uint32_t partitions) {
  std::vector<uint32_t> of;
  for (uint32_t p = 0; p < partitions; ++p) {
    const uint32_t size = vertex_count / partitions + (p < vertex_count % partitions);
    of.insert(of.end(), size, p);
  }
  return of;
}

TEST(GridLayoutTest, AgreesWithHandingOutVerticesOneByOne) {
  for (uint32_t vertex_count = 1; vertex_count <= 70; ++vertex_count) {
    for (uint32_t partitions = 1; partitions <= 80; ++partitions) {
      const GridLayout layout(vertex_count, partitions);
      const std::vector<uint32_t> model = model_partitions(vertex_count, partitions);
      for (uint32_t v = 0; v < vertex_count; ++v) {
        ASSERT_EQ(layout.partition_of(v), model[v]) << "V=" << vertex_count << " P=" << partitions;
      }
    }
  }
}

TEST(GridLayoutTest, DividesExactlyUpToTheLargestVertex) {
  std::mt19937 random(1);
  for (int round = 0; round < 200'000; ++round) {
    const uint32_t divisor = 1 + static_cast<uint32_t>(random() % kVertexCountMax >> random() % 31);
    const uint32_t multiple = kVertexMax / divisor * divisor;
    const Divider divide(divisor);
    for (const uint32_t x :
         {kVertexMax, multiple, multiple - 1, static_cast<uint32_t>(random() >> 1)}) {
      if (x <= kVertexMax) {
        ASSERT_EQ(divide(x), x / divisor) << x << " / " << divisor;
      }
    }
  }
}

// The whole grid in memory, by file name: a model of `preprocess` with one thread.
template <class E>
std::map<std::string, std::string> model_grid(const std::vector<E>& edges, uint32_t vertex_count,
                                              uint32_t partitions, size_t run_edges) {
  const std::vector<uint32_t> partition_of = model_partitions(vertex_count, partitions);
  using Place = std::pair<uint32_t, uint32_t>;
  std::map<Place, std::string> blocks, held;
  for (size_t first = 0; first < edges.size(); first += run_edges) {
    std::map<Place, std::string> run;
    for (size_t e = first; e < std::min(first + run_edges, edges.size()); ++e) {
      run[{partition_of[edges[e].source], partition_of[edges[e].target]}].append(
          reinterpret_cast<const char*>(&edges[e]), sizeof(E));
    }
    for (const auto& [place, bytes] : run) {
      if (bytes.size() > sizeof(E)) blocks[place] += bytes;
      if (bytes.size() == sizeof(E)) held[place] += bytes;
      if (held[place].size() == 768) blocks[place] += std::exchange(held[place], "");
    }
  }
  for (const auto& [place, bytes] : held) blocks[place] += bytes;

  std::map<std::string, std::string> files;
  const auto sweep = [&](const std::string& name, bool by_column) {
    std::vector<int64_t> offsets;
    std::string& all = files[name];
    for (uint32_t outer = 0; outer < partitions; ++outer) {
      for (uint32_t inner = 0; inner < partitions; ++inner) {
        offsets.push_back(static_cast<int64_t>(all.size()));
        all += by_column ? blocks[{inner, outer}] : blocks[{outer, inner}];
      }
    }
    offsets.push_back(static_cast<int64_t>(all.size()));
    files[name + "_offset"] = bytes_of(offsets);
  };
  sweep("column", true);
  sweep("row", false);
  for (uint32_t i = 0; i < partitions; ++i) {
    for (uint32_t j = 0; j < partitions; ++j) {
      files[fmt::format("block-{}-{}", i, j)] = blocks[{i, j}];
    }
  }
  files["meta"] =
      fmt::format("{} {} {} {}", sizeof(E) == 12 ? 1 : 0, vertex_count, edges.size(), partitions);
  return files;
}

class GridTest : public TempDirTest {
 protected:
  GridOptions options(const std::string& input, EdgeFormat format = EdgeFormat::kSnap) const {
    return {.input = input, .format = format, .output = path("grid")};
  }

  // A small grid to damage.
  std::string make_grid() const {
    GridOptions o = options(write("in", "0 1\n1 3\n3 0\n2 2\n3 3\n"));
    o.partitions = 2;
    EXPECT_TRUE(build_grid(o));
    return path("grid");
  }
};

// FORMAT.md works this one through by hand.
TEST_F(GridTest, WritesTheExampleOfTheFormatPage) {
  const auto files = files_of(make_grid());
  EXPECT_EQ(files.at("meta"), "0 4 5 2");
  EXPECT_EQ(files.at("block-0-0"), bytes_of<int32_t>({0, 1}));
  EXPECT_EQ(files.at("block-0-1"), bytes_of<int32_t>({1, 3}));
  EXPECT_EQ(files.at("block-1-0"), bytes_of<int32_t>({3, 0}));
  EXPECT_EQ(files.at("block-1-1"), bytes_of<int32_t>({2, 2, 3, 3}));
  EXPECT_EQ(files.at("row"), bytes_of<int32_t>({0, 1, 1, 3, 3, 0, 2, 2, 3, 3}));
  EXPECT_EQ(files.at("row_offset"), bytes_of<int64_t>({0, 8, 16, 24, 40}));
  EXPECT_EQ(files.at("column"), bytes_of<int32_t>({0, 1, 3, 0, 1, 3, 2, 2, 3, 3}));
  EXPECT_EQ(files.at("column_offset"), bytes_of<int64_t>({0, 8, 16, 24, 40}));
  EXPECT_EQ(files.size(), 9u);
}

template <class E>
std::vector<E> random_edges(std::mt19937& random, uint32_t vertex_count) {
  std::vector<E> edges(1 + random() % 3000);
  for (E& edge : edges) {
    // Squared, so that blocks differ in size and some are empty.
    const auto vertex = [&] {
      const double x = static_cast<double>(random() % 1000) / 1000;
      return static_cast<uint32_t>(x * x * vertex_count);
    };
    edge.source = vertex();
    edge.target = vertex();
    if constexpr (sizeof(E) == 12) edge.weight = static_cast<float>(random() % 100) / 8;
  }
  return edges;
}

class GridPropertyTest : public GridTest, public testing::WithParamInterface<unsigned> {
 protected:
  template <class E>
  void compare(std::mt19937& random) {
    const uint32_t vertex_count = 1 + static_cast<uint32_t>(random() % 500);
    const std::vector<E> edges = random_edges<E>(random, vertex_count);
    GridOptions o = options(write("in", bytes_of(edges)), EdgeFormat::kBin);
    o.weighted = sizeof(E) == 12;
    // 0: it chooses
    o.partitions = random() % 3 == 0 ? 0 : 1 + static_cast<uint32_t>(random() % 12);
    o.threads = 1 + static_cast<unsigned>(random() % 4);
    o.run_edges = 1 + static_cast<uint32_t>(random() % 200);
    // Some in memory, some spilled, some both.
    o.memory_budget_bytes = 15'000 + random() % 80'000;
    o.overwrite = true;
    uint32_t used = 0;
    for (const E& edge : edges) used = std::max({used, edge.source + 1, edge.target + 1});
    o.vertices = random() % 2 == 0 ? vertex_count : 0;
    auto summary = build_grid(o);
    ASSERT_TRUE(summary) << summary.error().text;
    const uint32_t count = o.vertices != 0 ? vertex_count : used;
    const uint32_t partitions = choose_partitions(count, edges.size(), o.partitions);
    const auto model = model_grid(edges, count, partitions, o.run_edges);
    const auto files = files_of(o.output);
    ASSERT_EQ(files.size(), model.size());
    uint64_t bytes = 0;
    for (const auto& [name, content] : model) {
      ASSERT_TRUE(files.at(name) == content) << name;
      bytes += content.size();
    }
    EXPECT_EQ(summary->output_bytes, bytes);
    auto checked = check_grid(o.output);
    ASSERT_TRUE(checked) << checked.error().text;
    EXPECT_EQ(checked->edge_count, edges.size());
    // Edges are spilled before they are sorted, and after; then with tables of their blocks.
    const uint64_t run_count = (edges.size() + o.run_edges - 1) / o.run_edges;
    EXPECT_LE(summary->spilled_bytes,
              2 * edges.size() * sizeof(E) + run_count * (partitions * partitions + 1) * 4);
    spilled_ |= summary->spilled_bytes > 0;
    kept_ |= summary->spilled_bytes == 0;
  }
  bool spilled_ = false;
  bool kept_ = false;
};

TEST_P(GridPropertyTest, EveryFileIsThatOfTheModel) {
  for (unsigned round = 0; round < 12; ++round) {
    const unsigned seed = GetParam() * 1000 + round;
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    if (round % 2 == 0) {
      compare<Edge>(random);
    } else {
      compare<WeightedEdge>(random);
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_TRUE(spilled_ && kept_) << "the budgets no longer try both";
}
INSTANTIATE_TEST_SUITE_P(Seeds, GridPropertyTest, testing::Range(1u, 7u));

TEST_F(GridTest, IsTheSameWithAnyNumberOfThreadsAndAnyMemory) {
  ASSERT_TRUE(write_rmat({.scale = 12, .edges = 300'000, .seed = 5},
                         {.path = path("in"), .format = EdgeFormat::kSnap}));
  std::map<std::string, std::string> first;
  for (const unsigned threads : {1u, 2u, 6u}) {
    for (const uint64_t budget : {2'000'000u, 200'000'000u}) {
      GridOptions o = options(path("in"));
      o.partitions = 16;
      o.threads = threads;
      o.run_edges = 10'000;
      o.memory_budget_bytes = budget;
      o.overwrite = true;
      auto summary = build_grid(o);
      ASSERT_TRUE(summary) << summary.error().text;
      EXPECT_EQ(summary->spilled_bytes > 0, budget == 2'000'000u);
      if (first.empty()) first = files_of(o.output);
      EXPECT_TRUE(files_of(o.output) == first) << threads << " threads, " << budget << " bytes";
    }
  }
}

TEST_F(GridTest, ManyMoreBlocksThanFileDescriptors) {
  rlimit old_limit;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old_limit), 0);
  rlimit low = old_limit;
  low.rlim_cur = 40;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  GridOptions o = options(write("in", "0 99\n12 50\n"));
  o.partitions = 12;
  auto summary = build_grid(o);
  ::setrlimit(RLIMIT_NOFILE, &old_limit);
  ASSERT_TRUE(summary) << summary.error().text;
  EXPECT_TRUE(check_grid(o.output));
}

TEST_F(GridTest, ChoosesPartitionsAsPreprocessDoes) {
  EXPECT_EQ(choose_partitions(1, 1, 0), 1u);
  EXPECT_EQ(choose_partitions((1 << 20) - 1, 1, 0), 1u);
  EXPECT_EQ(choose_partitions(5 << 20, 1, 0), 5u);
  EXPECT_EQ(choose_partitions(5 << 20, 1, 3), 3u);
  for (const uint64_t vertices : {uint64_t{33} << 20, uint64_t{1} << 30, kVertexCountMax}) {
    EXPECT_EQ(choose_partitions(vertices, vertices, 0), vertices >> 20);
    EXPECT_EQ(choose_partitions(vertices, UINT64_MAX, 0), vertices >> 20);
  }
}

// Each block is a file, and a grid of 2^31 vertices would have four million of them.
TEST_F(GridTest, ChoosesFewerPartitionsForFewEdges) {
  EXPECT_EQ(choose_partitions(kVertexCountMax, 2, 0), 32u);
  EXPECT_EQ(choose_partitions(kVertexCountMax, 256 * 100 * 100, 0), 100u);
  EXPECT_EQ(choose_partitions(kVertexCountMax, 2, 2047), 2047u);
  for (const uint64_t vertices : {uint64_t{0}, uint64_t{2'000'000'001}}) {
    GridOptions o = options(write("in", "0 2000000000\n5 7\n"));
    o.vertices = vertices;
    o.overwrite = true;
    auto summary = build_grid(o);
    ASSERT_TRUE(summary) << summary.error().text;
    EXPECT_EQ(summary->partitions, 32u);
    EXPECT_TRUE(check_grid(o.output));
  }
}

// The vertex count is known at once, and the partitions only when enough edges have come: some runs
// are sorted as they come, the others at the end.
TEST_F(GridTest, IsTheSameIfPartitionsAreChosenMeanwhile) {
  ASSERT_TRUE(write_rmat({.scale = 20, .edges = 290'000, .seed = 5},
                         {.path = path("in"), .format = EdgeFormat::kBin}));
  std::map<std::string, std::string> chosen;
  for (const uint32_t partitions : {0u, 33u}) {
    for (const uint64_t budget : {4'000'000u, 200'000'000u}) {
      GridOptions o = options(path("in"), EdgeFormat::kBin);
      o.vertices = uint64_t{33} << 20;
      o.partitions = partitions;
      o.run_edges = 20'000;
      o.memory_budget_bytes = budget;
      o.overwrite = true;
      auto summary = build_grid(o);
      ASSERT_TRUE(summary) << summary.error().text;
      EXPECT_EQ(summary->partitions, 33u);
      if (chosen.empty()) chosen = files_of(o.output);
      EXPECT_TRUE(files_of(o.output) == chosen) << partitions << ", " << budget << " bytes";
    }
  }
}

TEST_F(GridTest, RefusesAnExistingOutputAndLeavesItAlone) {
  const std::string grid = make_grid();
  const auto before = files_of(grid);
  auto summary = build_grid(options(write("in2", "0 1\n")));
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, EEXIST);
  EXPECT_EQ(files_of(grid), before);
}

TEST_F(GridTest, OverwritesAGridButNothingElse) {
  const std::string grid = make_grid();
  GridOptions o = options(write("in2", "0 1\n"));
  o.overwrite = true;
  ASSERT_TRUE(build_grid(o));
  EXPECT_EQ(read_grid(grid)->edge_count, 1u);

  fs::create_directory(path("home"));
  write("home/letter", "dear");
  o.output = path("home");
  auto summary = build_grid(o);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().text, path("home") + ": not a grid, so it is not overwritten");
  EXPECT_EQ(read(path("home/letter")), "dear");
  EXPECT_EQ(names_in_dir(), (std::vector<std::string>{"grid", "home", "in", "in2"}));
}

TEST_F(GridTest, AFailureLeavesNothingAndTheOldGridAlone) {
  const std::string grid = make_grid();
  const auto before = files_of(grid);
  GridOptions o = options(write("in2", "0 1\nx y\n"));
  o.overwrite = true;
  EXPECT_EQ(build_grid(o).error().text, path("in2") + ": line 2: 'x' is not a vertex number");
  EXPECT_EQ(files_of(grid), before);
  EXPECT_EQ(names_in_dir(), (std::vector<std::string>{"grid", "in", "in2"}));
}

// A file size limit stands in for a full disk: the same calls fail.
TEST_F(GridTest, AFullDiskIsNamedAndLeavesNothing) {
  ASSERT_TRUE(write_rmat({.scale = 10, .edges = 20'000, .seed = 5},
                         {.path = path("in"), .format = EdgeFormat::kBin}));
  rlimit old_limit;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit low = old_limit;
  low.rlim_cur = 100'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  auto summary = build_grid(options(path("in"), EdgeFormat::kBin));
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  ::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, EFBIG);
  EXPECT_NE(summary.error().text.find("/row: cannot write: File too large"), std::string::npos)
      << summary.error().text;
  EXPECT_EQ(names_in_dir(), std::vector<std::string>{"in"});
}

TEST_F(GridTest, RemovesLeftoversOfAKilledBuildOnly) {
  fs::create_directories(path(".grid.partial-1"));  // its lock is free
  write(".grid.partial-1/row", "half");
  fs::create_directories(path(".grid.partial-2"));
  const Fd running(::open(path(".grid.partial-2").c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::flock(running.get(), LOCK_EX), 0);
  fs::create_directories(path(".grid2.partial-1"));  // of another grid
  make_grid();
  EXPECT_EQ(names_in_dir(),
            (std::vector<std::string>{".grid.partial-2", ".grid2.partial-1", "grid", "in"}));
}

TEST_F(GridTest, KilledAtAnyTimeLeavesNothingUnderTheFinalNameAndRunsAgain) {
  ASSERT_TRUE(write_rmat({.scale = 14, .edges = 400'000, .seed = 5},
                         {.path = path("in"), .format = EdgeFormat::kBin}));
  GridOptions o = options(path("in"), EdgeFormat::kBin);
  o.partitions = 20;
  for (int round = 0; round < 8; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      // Skips exit handlers, which are those of the tests.
      ::_exit(build_grid(o) ? 0 : 1);
    }
    ::usleep(static_cast<useconds_t>(3000 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (fs::exists(o.output)) {
      EXPECT_TRUE(check_grid(o.output)) << "a name means a whole grid";
      fs::remove_all(o.output);
    }
  }
  ASSERT_TRUE(build_grid(o));
  EXPECT_EQ(names_in_dir(), (std::vector<std::string>{"grid", "in"}));
}

TEST_F(GridTest, SaysHowMuchMemoryItNeeds) {
  GridOptions o = options(write("in", "0 1\n"));
  o.memory_budget_bytes = 10 << 20;
  auto summary = build_grid(o);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().text,
            "a memory budget of 10M: too small, a grid of 1 blocks needs 83M");
  o.memory_budget_bytes = 83 << 20;
  EXPECT_TRUE(build_grid(o));
}

// A graph of 240 MB in a budget of 96 MB: counted by the kernel.
TEST_F(GridTest, KeepsToItsMemoryBudget) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "not applicable: a sanitizer's own memory would count";
#endif
  ASSERT_TRUE(write_rmat({.scale = 20, .edges = 30'000'000, .seed = 5},
                         {.path = path("in"), .format = EdgeFormat::kBin}));
  GridOptions o = options(path("in"), EdgeFormat::kBin);
  o.partitions = 8;
  o.memory_budget_bytes = 96 << 20;
  for (const uint64_t vertices : {uint64_t{0}, uint64_t{1} << 20}) {
    o.vertices = vertices;
    o.overwrite = true;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(build_grid(o) ? 0 : 1);
    int status = 0;
    rusage usage;
    ASSERT_EQ(::wait4(child, &status, 0, &usage), child);
    ASSERT_EQ(status, 0);
    const uint64_t own_bytes = uint64_t{16} << 20;  // program, libraries, stacks, this test
    EXPECT_LE(static_cast<uint64_t>(usage.ru_maxrss) * 1024, o.memory_budget_bytes + own_bytes);
    EXPECT_TRUE(read_grid(o.output));
  }
}

// The ways to damage a grid, and the message for each.
struct GridDamage {
  const char* name;
  const char* file;
  std::string content;  // the new content; "-" removes the file
  std::string reason;   // after the directory
};
class DamagedGridTest : public GridTest, public testing::WithParamInterface<GridDamage> {};

TEST_P(DamagedGridTest, IsRefusedByFileOffsetAndReason) {
  const GridDamage& damage = GetParam();
  const std::string grid = make_grid();
  fs::remove(grid + "/" + damage.file);
  if (damage.content != "-") write(std::string("grid/") + damage.file, damage.content);
  auto info = check_grid(grid);
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().text, grid + damage.reason);
}

const GridDamage kGridDamages[] = {
    {"NoMeta", "meta", "-", "/meta: cannot open: No such file or directory"},
    {"ForeignMeta", "meta", "<html>",
     "/meta: byte 0: not GridGraph's four numbers (type, vertices, edges, partitions)"},
    {"TruncatedMeta", "meta", "0 4 5",
     "/meta: byte 0: not GridGraph's four numbers (type, vertices, edges, partitions)"},
    {"LongMeta", "meta", "0 4 5 2 9",
     "/meta: byte 0: not GridGraph's four numbers (type, vertices, edges, partitions)"},
    {"UnknownType", "meta", "7 4 5 2", "/meta: edge type 7: must be 0 or 1"},
    {"NoVertices", "meta", "0 0 5 2", "/meta: 0 vertices: must be 1 to 2147483647"},
    {"NegativeEdges", "meta", "0 4 -5 2", "/meta: -5 edges: must not be negative"},
    {"TooManyPartitions", "meta", "0 4 5 99999", "/meta: 99999 partitions: must be 1 to 2048"},
    {"OtherEdgeCount", "meta", "0 4 6 2", "/meta: says 6 edges, but the blocks hold 5"},
    {"MorePartitions", "meta", "0 4 5 3", "/block-0-2: cannot open: No such file or directory"},
    {"TornBlock", "block-1-1", std::string(13, '\0'),
     "/block-1-1: byte 8: truncated: 5 of an edge's 8 bytes"},
    {"NoBlock", "block-0-1", "-", "/block-0-1: cannot open: No such file or directory"},
    {"ShortTable", "row_offset", std::string(32, '\0'),
     "/row_offset: byte 32: 32 bytes, expected 40"},
    {"WrongOffset", "column_offset", bytes_of<int64_t>({0, 8, 99, 24, 40}),
     "/column_offset: byte 16: offset 99, but the blocks before it hold 16 bytes"},
    {"ShortRow", "row", std::string(39, '\0'), "/row: byte 39: 39 bytes, expected 40"},
    {"LongColumn", "column", std::string(48, '\0'), "/column: byte 40: 48 bytes, expected 40"},
    {"ForeignEdge", "block-1-0", bytes_of<int32_t>({3, 3}),
     "/block-1-0: byte 0: edge 3 → 3 does not belong in this block"},
    {"VertexTooLarge", "block-1-1", bytes_of<int32_t>({2, 2, 3, 4}),
     "/block-1-1: byte 8: edge 3 → 4 does not belong in this block"},
    {"RowDiffers", "row", bytes_of<int32_t>({0, 1, 1, 3, 3, 0, 2, 2, 3, 2}),
     "/row: byte 36: differs from its block file"},
};
INSTANTIATE_TEST_SUITE_P(Table, DamagedGridTest, testing::ValuesIn(kGridDamages),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(GridTest, ReadsPreprocessMetaWithALineEnd) {
  const std::string grid = make_grid();
  write("grid/meta", "0 4 5 2\n");
  EXPECT_TRUE(read_grid(grid));
}

}  // namespace
}  // namespace graphlane::graphfmt
