#include "graphfmt/rmat.h"

#include <array>
#include <cmath>
#include <set>

#include "tests/graphfmt/fixture.h"

namespace graphlane::graphfmt {
namespace {

using RmatTest = TempDirTest;

RmatOptions small_graph() { return {.scale = 10, .edges = 600'000, .seed = 42}; }

TEST_F(RmatTest, IsTheSameGraphWithAnyNumberOfThreads) {
  RmatOptions options = small_graph();
  Collect one;
  options.threads = 1;
  ASSERT_TRUE(generate_rmat(options, one));
  for (const unsigned threads : {2u, 5u}) {
    Collect many;
    options.threads = threads;
    options.memory_budget_bytes = 1 << 20;  // other batches, too
    auto summary = generate_rmat(options, many);
    ASSERT_TRUE(summary);
    EXPECT_EQ(summary->edge_count, options.edges);
    EXPECT_TRUE(many.records == one.records) << threads << " threads";
  }
}

TEST_F(RmatTest, AnEdgeDependsOnSeedAndIndexAlone) {
  RmatOptions options = small_graph();
  Collect all;
  ASSERT_TRUE(generate_rmat(options, all));
  const std::vector<Edge> edges = all.edges();
  for (const size_t index : {size_t{0}, size_t{1}, size_t{4711}, edges.size() - 1}) {
    EXPECT_EQ(rmat_edge(options, index), edges[index]);
  }
  Collect other;
  options.seed = 43;
  ASSERT_TRUE(generate_rmat(options, other));
  EXPECT_FALSE(other.records == all.records);
}

// Each level draws the quadrants with the probabilities a, b, c, d: within five standard
// deviations.
TEST_F(RmatTest, EveryLevelHasTheSharesThatWereAskedFor) {
  const RmatOptions options = small_graph();
  Collect all;
  ASSERT_TRUE(generate_rmat(options, all));
  const double n = static_cast<double>(options.edges);
  const std::array<double, 4> shares = {0.57, 0.19, 0.19, 0.05};
  for (unsigned level = 0; level < options.scale; ++level) {
    std::array<double, 4> count{};
    for (const Edge& edge : all.edges()) {
      ++count[(edge.source >> level & 1) * 2 + (edge.target >> level & 1)];
    }
    for (size_t q = 0; q < 4; ++q) {
      EXPECT_NEAR(count[q] / n, shares[q], 5 * std::sqrt(shares[q] * (1 - shares[q]) / n))
          << "level " << level << ", quadrant " << q;
    }
  }
}

// Levels must not repeat each other: the chance of quadrant a twice is a².
TEST_F(RmatTest, LevelsAreIndependent) {
  const RmatOptions options = small_graph();
  Collect all;
  ASSERT_TRUE(generate_rmat(options, all));
  const double n = static_cast<double>(options.edges), expected = 0.57 * 0.57;
  for (unsigned level = 0; level + 1 < options.scale; ++level) {
    double both = 0;
    for (const Edge& edge : all.edges()) both += ((edge.source | edge.target) >> level & 3) == 0;
    EXPECT_NEAR(both / n, expected, 5 * std::sqrt(expected * (1 - expected) / n))
        << "level " << level;
  }
}

TEST_F(RmatTest, ScramblingRenamesVerticesOneToOne) {
  for (const unsigned scale : {1u, 2u, 7u, 12u}) {
    RmatOptions options{.scale = scale, .edges = 200'000, .seed = 9};
    Collect plain, scrambled;
    ASSERT_TRUE(generate_rmat(options, plain));
    options.scramble = true;
    ASSERT_TRUE(generate_rmat(options, scrambled));
    const std::vector<Edge> before = plain.edges(), after = scrambled.edges();
    std::map<uint32_t, uint32_t> name_of, owner_of;
    for (size_t e = 0; e < before.size(); ++e) {
      for (const auto& [old_name, new_name] : {std::pair{before[e].source, after[e].source},
                                               std::pair{before[e].target, after[e].target}}) {
        ASSERT_LT(new_name, 1u << scale);
        ASSERT_EQ(name_of.try_emplace(old_name, new_name).first->second, new_name)
            << "scale " << scale;
        ASSERT_EQ(owner_of.try_emplace(new_name, old_name).first->second, old_name)
            << "scale " << scale;
      }
    }
  }
}

TEST_F(RmatTest, WritesTextAndBinaryOfTheSameGraph) {
  const RmatOptions options{.scale = 8, .edges = 5000, .seed = 3};
  ASSERT_TRUE(write_rmat(options, {.path = path("a.bin"), .format = EdgeFormat::kBin}));
  ASSERT_TRUE(write_rmat(options, {.path = path("a.txt"), .format = EdgeFormat::kSnap}));
  Collect text;
  ASSERT_TRUE(read_edges({.path = path("a.txt")}, text));
  EXPECT_EQ(read(path("a.bin")), text.records);
}

struct BadOptions {
  const char* name;
  RmatOptions options;
};
class BadRmatTest : public testing::TestWithParam<BadOptions> {};

TEST_P(BadRmatTest, IsRefused) {
  Collect sink;
  auto done = generate_rmat(GetParam().options, sink);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, EINVAL);
}

const BadOptions kBadOptions[] = {
    {"ScaleZero", {.scale = 0, .edges = 1}},
    {"ScaleBeyondVertexMax", {.scale = 31, .edges = 1}},
    {"NoEdges", {.scale = 4, .edges = 0}},
    {"SharesAboveOne", {.scale = 4, .edges = 1, .a = 0.9, .b = 0.2, .c = 0}},
    {"NegativeShare", {.scale = 4, .edges = 1, .a = -0.1}},
    {"NanShare", {.scale = 4, .edges = 1, .a = NAN}},
};
INSTANTIATE_TEST_SUITE_P(Table, BadRmatTest, testing::ValuesIn(kBadOptions),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace graphlane::graphfmt
