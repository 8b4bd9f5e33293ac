// The parts of the delta engine: selection of vertices, deltas between workers, the end of a run.
#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "adapters/kv/maiter/exchange.h"
#include "adapters/kv/maiter/state_table.h"

namespace graphlane::maiter {
namespace {

TEST(StateTable, SelectsTheHighestPrioritiesInTheOrderOfTheTable) {
  std::mt19937_64 random(1);
  std::vector<double> values(5000), deltas(5000);
  for (double& delta : deltas) {
    delta =
        std::ldexp(static_cast<double>(random() % 1000) / 1000, -static_cast<int>(random() % 40));
  }
  const StateTable table(values, deltas, true);
  for (const uint64_t count : {1u, 50u, 500u, 4000u}) {
    std::vector<uint32_t> chosen;
    table.select(100, 5000, count, 1e-9, chosen);
    ASSERT_LE(chosen.size(), count);
    EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
    double coldest = 1;
    for (const uint32_t v : chosen) {
      EXPECT_GE(v, 100u);
      coldest = std::min(coldest, deltas[v]);
    }
    // Nothing that was left out is hotter than an eighth of a doubling above the coldest.
    for (uint32_t v = 100; v < 5000; ++v) {
      EXPECT_TRUE(deltas[v] <= coldest * 1.13 ||
                  std::binary_search(chosen.begin(), chosen.end(), v))
          << v;
    }
    const auto above =
        std::count_if(deltas.begin() + 100, deltas.end(), [](double d) { return d > 1e-9; });
    EXPECT_EQ(chosen.size(), std::min<size_t>(count, static_cast<size_t>(above)));
  }
}

TEST(StateTable, OfAMinimumTheLowestGoFirst) {
  std::vector<double> values(6, INFINITY), deltas = {5, INFINITY, 1, 9, 0, 3};
  values[2] = 1;  // has it already
  const StateTable table(values, deltas, false);
  std::vector<uint32_t> chosen;
  table.select(0, 6, 2, 0, chosen);
  EXPECT_EQ(chosen, (std::vector<uint32_t>{4, 5}));
  table.select(0, 6, 6, 0, chosen);
  EXPECT_EQ(chosen, (std::vector<uint32_t>{0, 3, 4, 5}));
  EXPECT_EQ(table.left(0, 6), 4);
}

TEST(DeltaRing, KeepsTheOrderAndRefusesWhatDoesNotFit) {
  DeltaRing::Ends ends;
  std::vector<Delta> slots(64);
  std::thread writer([&] {
    DeltaRing ring(ends, slots);
    for (uint32_t next = 0; next < 100'000;) {
      Delta some[7];
      for (Delta& one : some) one = {next++, next * 0.5};
      std::span<const Delta> rest(some);
      while (!rest.empty()) rest = rest.subspan(ring.write(rest));
    }
  });
  DeltaRing ring(ends, slots);
  uint32_t next = 0;
  bool in_order = true;
  while (next < 100'000) {
    ring.read([&](const Delta& delta) {
      in_order &= delta.vertex == next && delta.delta == (next + 1) * 0.5;
      ++next;
    });
  }
  writer.join();
  EXPECT_TRUE(in_order);
}

TEST(Termination, TakesTwoQuietRounds) {
  Termination one(1e-3), two(1e-3);
  EXPECT_FALSE(one.add_round({.sent = 5, .received = 5, .left = 0}));
  EXPECT_TRUE(one.add_round({.sent = 7, .received = 7, .left = 1e-4}));
  EXPECT_FALSE(two.add_round({.sent = 5, .received = 4, .left = 0}));  // one is on its way
  EXPECT_FALSE(two.add_round({.sent = 5, .received = 5, .left = 0}));
  EXPECT_FALSE(two.add_round({.sent = 7, .received = 7, .left = 0.1}));
  EXPECT_FALSE(two.add_round({.sent = 7, .received = 7, .left = 0}));
  EXPECT_TRUE(two.add_round({.sent = 7, .received = 7, .left = 0}));
}

TEST(ExchangeTest, AnswersOfARoundAreSummedOnceAllAreThere) {
  auto exchange = Exchange::create(2, 10);
  ASSERT_TRUE(exchange);
  EXPECT_EQ(exchange->answered_round(), 0u);
  exchange->answer(0, 1, {.sent = 3, .received = 1, .left = 0.5});
  EXPECT_EQ(exchange->answered_round(), 0u);
  exchange->answer(1, 1, {.sent = 1, .received = 2, .left = 0.25});
  exchange->answer(0, 2, {.sent = 4, .received = 2, .left = 0});
  EXPECT_EQ(exchange->answered_round(), 1u);
  const auto sum = exchange->sum_of(1);
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->sent, 4u);
  EXPECT_EQ(sum->received, 3u);
  EXPECT_EQ(sum->left, 0.75);
  for (uint64_t round = 3; round <= 5; ++round) exchange->answer(0, round, {});
  EXPECT_FALSE(exchange->sum_of(1)) << "overwritten";
}

TEST(WorkerProcesses, AKilledWorkerIsNamed) {
  WorkerProcesses processes{.count = 3,
                            .body =
                                [](unsigned w) {
                                  if (w == 1) ::raise(SIGKILL);
                                  while (true) ::pause();
                                  return 0;
                                },
                            .tick = [] { return Outcome<void>(); },
                            .describe = [](unsigned) { return std::optional<Error>(); }};
  const auto done = run_processes(processes);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().text.find("worker 1 (process "), std::string::npos) << done.error().text;
  EXPECT_NE(done.error().text.find("signal 9"), std::string::npos) << done.error().text;
}

TEST(WorkerProcesses, AnErrorOfAWorkerIsTheRuns) {
  WorkerProcesses processes{.count = 2,
                            .body = [](unsigned w) { return w == 0 ? 1 : 0; },
                            .tick = [] { return Outcome<void>(); },
                            .describe = [](unsigned w) -> std::optional<Error> {
                              return make_error(EIO, "worker {}: a file", w);
                            }};
  const auto done = run_processes(processes);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text, "worker 0: a file");
}

}  // namespace
}  // namespace graphlane::maiter
