// The abilities of vertex programs: lists, parts of lists, messages, notifications, orders,
// vertical parts, errors.
#include "adapters/semiext/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "graphfmt/lists/lists_build.h"

namespace graphlane::semiext {
using graphfmt::CodecKind;
namespace {

namespace fs = std::filesystem;

using Adjacency = std::vector<std::vector<VertexId>>;

struct Way {
  CodecKind codec;
  unsigned threads;
  bool in_memory;
};

// A random graph of 2000 vertices, one of which has half of all as neighbours, stored and opened
// each way.
class EngineTest : public ::testing::TestWithParam<Way> {
 protected:
  static constexpr VertexId kCount = 2000;

  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "graphlane_test_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    out_.resize(kCount);
    in_.resize(kCount);
    std::mt19937 random(7);
    std::ofstream edges(directory_ + "/edges.bin", std::ios::binary);
    const auto add = [&](VertexId from, VertexId to) {
      out_[from].push_back(to);
      in_[to].push_back(from);
      edges.write(reinterpret_cast<const char*>(&from), sizeof from)
          .write(reinterpret_cast<const char*>(&to), sizeof to);
    };
    for (int i = 0; i < 20'000; ++i) add(random() % kCount, random() % kCount);
    for (VertexId v = 0; v < kCount; v += 2) add(17, v);
    edges.close();
    for (Adjacency* side : {&out_, &in_}) {
      for (std::vector<VertexId>& list : *side) std::sort(list.begin(), list.end());
    }
    const auto built = graphfmt::build_lists(
        {.input = {.path = directory_ + "/edges.bin", .format = graphfmt::EdgeFormat::kBin},
         .output = directory_ + "/graph",
         .codec = GetParam().codec});
    ASSERT_TRUE(built) << built.error().text;
    auto graph = Graph::open(directory_ + "/graph",
                             {.cache_bytes = 4 << 20, .in_memory = GetParam().in_memory});
    ASSERT_TRUE(graph) << graph.error().text;
    graph_ = std::move(*graph);
  }
  void TearDown() override {
    graph_.reset();
    fs::remove_all(directory_);
  }

  std::string directory_;
  std::unique_ptr<Graph> graph_;
  Adjacency out_, in_;
  WorkerPool pool_{GetParam().threads};
};

INSTANTIATE_TEST_SUITE_P(Ways, EngineTest,
                         ::testing::Values(Way{CodecKind::kRaw, 1, false},
                                           Way{CodecKind::kRaw, 4, true},
                                           Way{CodecKind::kVarint, 4, false},
                                           Way{CodecKind::kSimd, 1, true}));

TEST_P(EngineTest, DegreesAreThoseOfTheLists) {
  for (VertexId v = 0; v < kCount; ++v) {
    EXPECT_EQ(graph_->degree(v, EdgeSide::kOut), out_[v].size());
    EXPECT_EQ(graph_->degree(v, EdgeSide::kBoth), out_[v].size() + in_[v].size());
  }
}

// Each vertex reads its own list, another vertex's, and lists of both directions at once.
TEST_P(EngineTest, VerticesGetTheListsThatTheyAskFor) {
  struct Program {
    void run(Engine<Program>::Context& ctx, VertexId v) {
      ctx.request_vertex(v, (v + 1) % kCount, EdgeSide::kIn);
      ctx.request_vertex(v, v, EdgeSide::kBoth);
    }
    void run_on_vertex(Engine<Program>::Context&, VertexId v, const ListView& list) {
      const auto same = [](std::span<const VertexId> a, const std::vector<VertexId>& b) {
        return std::ranges::equal(a, b);
      };
      if (list.owner == v) {
        right += same(list.neighbours, out[v]) && same(list.in_neighbours, in[v]) &&
                 list.side == EdgeSide::kBoth;
      } else {
        right += same(list.neighbours, in[(v + 1) % kCount]) && list.owner == (v + 1) % kCount;
      }
    }
    const Adjacency &out, &in;
    std::atomic<uint64_t> right{0};
  } program{out_, in_};
  Engine<Program> engine(*graph_, pool_, program);
  engine.activate_all();
  ASSERT_TRUE(engine.run());
  EXPECT_EQ(program.right, 2 * kCount);
  EXPECT_EQ(engine.stats().lists_given, 2 * kCount);
  EXPECT_EQ(engine.iteration(), 1u);
  if (!GetParam().in_memory) {
    EXPECT_LT(engine.stats().ranges_read, kCount / 4);
  }
}

// Reads lists of both directions, in iterations upwards and downwards, and in a random order: one
// task a merged range.
TEST_P(EngineTest, OwnListsComeWholeAndByFewTasks) {
  struct Program {
    void run(Engine<Program>::Context& ctx, VertexId v) {
      for (const EdgeSide side : {EdgeSide::kOut, EdgeSide::kIn}) ctx.request_vertex(v, v, side);
      if (ctx.iteration() < 2) ctx.activate_vertex(v);
    }
    void run_on_vertex(Engine<Program>::Context&, VertexId v, const ListView& list) {
      right += list.owner == v &&
               std::ranges::equal(list.neighbours, list.side == EdgeSide::kOut ? out[v] : in[v]);
    }
    const Adjacency &out, &in;
    std::atomic<uint64_t> right{0};
  };
  for (const bool is_ordered : {false, true}) {
    Program program{out_, in_};
    EngineOptions options;
    if (is_ordered) {
      options.order.resize(kCount);
      std::iota(options.order.begin(), options.order.end(), 0u);
      std::shuffle(options.order.begin(), options.order.end(), std::mt19937(5));
    }
    Engine<Program> engine(*graph_, pool_, program, options);
    engine.activate_all();
    ASSERT_TRUE(engine.run());
    EXPECT_EQ(program.right, 3 * 2 * kCount);
    // A worker's range of vertices may begin a task, and does not end one.
    if (!is_ordered) {
      EXPECT_LE(engine.stats().ranges_read, 3 * 2 * 16 * pool_.size());
    }
  }
}

TEST_P(EngineTest, PartsOfListsAreTheRequestedOnes) {
  struct Program {
    void run(Engine<Program>::Context& ctx, VertexId v) {
      const Engine<Program>::Context::Partial parts[] = {
          {v, 1, 3}, {17, v, 2}, {v, 1 << 20, 5}, {v, 0, 0}};
      ctx.request_partial_vertices(v, parts, EdgeSide::kOut);
    }
    void run_on_vertex(Engine<Program>::Context&, VertexId, const ListView& list) {
      const std::vector<VertexId>& all = out[list.owner];
      const bool within = list.first + list.neighbours.size() <= all.size();
      right +=
          within && std::ranges::equal(list.neighbours,
                                       std::span(all).subspan(list.first, list.neighbours.size()));
      count += list.neighbours.size();
    }
    const Adjacency& out;
    std::atomic<uint64_t> right{0}, count{0};
  } program{out_};
  Engine<Program> engine(*graph_, pool_, program);
  engine.activate_all();
  ASSERT_TRUE(engine.run());
  uint64_t count = 0;
  for (VertexId v = 0; v < kCount; ++v) {
    count += std::min<size_t>(3, out_[v].size() - std::min<size_t>(1, out_[v].size()));
    count += std::min<size_t>(2, out_[17].size() - std::min<size_t>(v, out_[17].size()));
  }
  EXPECT_EQ(program.right, 4 * kCount);
  EXPECT_EQ(program.count, count);
}

// Inactive vertices get messages too, one for each copy. The sums do not depend on the order.
TEST_P(EngineTest, MessagesArriveOnceAndWakeTheirVertices) {
  struct Program {
    using Message = uint64_t;
    void run(Engine<Program>::Context& ctx, VertexId v) {
      if (ctx.iteration() == 0) ctx.request_vertex(v, v, EdgeSide::kOut);
      ++runs;
    }
    void run_on_vertex(Engine<Program>::Context& ctx, VertexId v, const ListView& list) {
      ctx.multicast_msg(list.neighbours, v);
      ctx.send_msg(v, 1);
    }
    void run_on_message(Engine<Program>::Context& ctx, VertexId v, uint64_t value) {
      sum[v] += value;
      if (v % 100 == 0) ctx.activate_vertex(v);
      if (value == 3) ctx.notify_iteration_end(v);
    }
    void run_on_iteration_end(Engine<Program>::Context&, VertexId v) { ended[v] += 1; }
    std::vector<uint64_t> sum = std::vector<uint64_t>(kCount);
    std::vector<std::atomic<uint32_t>> ended = std::vector<std::atomic<uint32_t>>(kCount);
    std::atomic<uint64_t> runs{0};
  };
  for (const bool ordered : {false, true}) {
    Program program;
    EngineOptions options;
    if (ordered) {
      options.order.resize(kCount);
      std::iota(options.order.rbegin(), options.order.rend(), 0u);
    }
    Engine<Program> engine(*graph_, pool_, program, options);
    std::vector<VertexId> odd;
    for (VertexId v = 1; v < kCount; v += 2) odd.push_back(v);
    engine.activate_vertices(odd);
    ASSERT_TRUE(engine.run());
    uint64_t woken = 0;
    for (VertexId v = 0; v < kCount; ++v) {
      uint64_t sum = v % 2, threes = 0;
      bool told = false;
      for (const VertexId u : in_[v]) {
        if (u % 2 == 0) continue;
        sum += u;
        threes += u == 3;
        told = true;
      }
      EXPECT_EQ(program.sum[v], sum) << v;
      EXPECT_EQ(program.ended[v], threes) << v;
      woken += v % 100 == 0 && told;
    }
    EXPECT_EQ(program.runs, kCount / 2 + woken);
    EXPECT_EQ(engine.iteration(), 2u);
  }
}

TEST_P(EngineTest, VerticalPartsTogetherAreTheWhole) {
  struct Program {
    void run(Engine<Program>::Context& ctx, VertexId v) {
      ctx.request_vertex(v, v, EdgeSide::kOut);
    }
    void run_on_vertex(Engine<Program>::Context& ctx, VertexId v, const ListView& list) {
      for (const VertexId u : list.neighbours) {
        count[v] += u >= ctx.part_begin() && u < ctx.part_end();
      }
      if (ctx.part() < last_part[v]) wrong = true;
      last_part[v] = ctx.part();
    }
    std::vector<size_t> count = std::vector<size_t>(kCount);
    std::vector<uint32_t> last_part = std::vector<uint32_t>(kCount);
    std::atomic<bool> wrong{false};
  } program;
  Engine<Program> engine(*graph_, pool_, program, {.vertical_parts = 3});
  engine.activate_all();
  ASSERT_TRUE(engine.run());
  for (VertexId v = 0; v < kCount; ++v) EXPECT_EQ(program.count[v], out_[v].size());
  EXPECT_FALSE(program.wrong);
  EXPECT_EQ(engine.stats().vertices_run, 3 * kCount);
}

TEST_P(EngineTest, AnOrderIsKeptAndWithoutOneDirectionsAlternate) {
  if (GetParam().threads > 1) GTEST_SKIP() << "not applicable: several threads";
  struct Program {
    void run(Engine<Program>::Context& ctx, VertexId v) {
      seen[ctx.iteration()].push_back(v);
      if (ctx.iteration() == 0) ctx.activate_vertices(all);
    }
    void run_on_vertex(Engine<Program>::Context&, VertexId, const ListView&) {}
    std::vector<VertexId> all = std::vector<VertexId>(kCount);
    std::vector<VertexId> seen[2];
  };
  Program upwards;
  std::iota(upwards.all.begin(), upwards.all.end(), 0u);
  Engine<Program> plain(*graph_, pool_, upwards);
  plain.activate_all();
  ASSERT_TRUE(plain.run());
  EXPECT_TRUE(std::ranges::is_sorted(upwards.seen[0]));
  EXPECT_EQ(upwards.seen[1].size(), kCount);
  if (!graph_->is_in_memory()) {
    EXPECT_TRUE(std::is_sorted(upwards.seen[1].rbegin(), upwards.seen[1].rend()));
  }

  Program ordered;
  EngineOptions options;
  options.order.resize(kCount);
  std::iota(options.order.begin(), options.order.end(), 0u);
  std::shuffle(options.order.begin(), options.order.end(), std::mt19937(3));
  Engine<Program> engine(*graph_, pool_, ordered, options);
  engine.activate_all();
  ASSERT_TRUE(engine.run());
  EXPECT_EQ(ordered.seen[0], options.order);
}

TEST_P(EngineTest, AFileThatFailsInTheMiddleEndsTheRunWithItsName) {
  if (GetParam().in_memory) GTEST_SKIP() << "not applicable: nothing is read";
  struct Program {
    void run(Engine<Program>::Context& ctx, VertexId v) {
      ctx.request_vertex(v, v, EdgeSide::kOut);
    }
    void run_on_vertex(Engine<Program>::Context&, VertexId, const ListView&) {}
  } program;
  const std::string lists = directory_ + "/graph/out.lists";
  fs::resize_file(lists, fs::file_size(lists) / 2);
  Engine<Program> engine(*graph_, pool_, program);
  engine.activate_all();
  const Outcome<void> done = engine.run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, EIO);
  EXPECT_TRUE(done.error().text.starts_with(lists + ": ")) << done.error().text;
}

TEST_P(EngineTest, AProgramsOwnErrorEndsTheRun) {
  struct Program {
    void run(Engine<Program>::Context& ctx, VertexId v) {
      if (v == 5) ctx.fail(make_error(EINVAL, "vertex 5"));
    }
    void run_on_vertex(Engine<Program>::Context&, VertexId, const ListView&) {}
  } program;
  Engine<Program> engine(*graph_, pool_, program);
  engine.activate_all();
  const Outcome<void> done = engine.run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text, "vertex 5");
}

TEST(WorkerPoolTest, RunsOnEveryWorkerAndHandsExceptionsOn) {
  WorkerPool pool(4);
  std::vector<std::atomic<int>> runs(pool.size());
  for (int i = 0; i < 100; ++i) pool.run([&](unsigned worker) { ++runs[worker]; });
  for (const auto& count : runs) EXPECT_EQ(count, 100);
  std::atomic<uint64_t> sum{0};
  pool.for_blocks(1000, 7, [&](uint64_t begin, uint64_t end, unsigned) {
    for (uint64_t i = begin; i < end; ++i) sum += i;
  });
  EXPECT_EQ(sum, 999 * 1000 / 2);
  EXPECT_THROW(pool.run([](unsigned worker) {
    if (worker == 2) throw std::bad_alloc();
  }),
               std::bad_alloc);
  pool.run([&](unsigned worker) { ++runs[worker]; });
  EXPECT_EQ(runs[3], 101);
}

}  // namespace
}  // namespace graphlane::semiext
