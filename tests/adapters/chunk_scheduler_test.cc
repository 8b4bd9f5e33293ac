#include "adapters/share/schedule/chunk_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace graphlane::share {
namespace {

std::string turns(ChunkScheduler& group) {
  std::string said;
  for (const ChunkScheduler::Turn& turn : group.step()) {
    said += std::to_string(turn.job) + (turn.first ? "! " : " ");
  }
  if (!said.empty()) said.pop_back();
  return said;
}

TEST(ChunkSchedulerTest, OneCoreGivesOneTurnAtATime) {
  ChunkScheduler group({{1, 1}, {2, 1}}, 1);
  group.ask(1, 0);
  group.ask(2, 0);
  EXPECT_EQ(turns(group), "1!");
  group.done(1);
  group.ask(1, 1);
  EXPECT_EQ(turns(group), "2") << "all go through a chunk before any goes on";
  group.done(2);
  group.ask(2, 1);
  EXPECT_EQ(turns(group), "2!") << "who pays for the chunk changes";
}

TEST(ChunkSchedulerTest, TwoCoresGiveTwoTurns) {
  ChunkScheduler group({{1, 1}, {2, 1}, {3, 1}}, 2);
  for (const uint32_t job : {1, 2, 3}) group.ask(job, 0);
  EXPECT_EQ(turns(group), "1! 2");
  group.done(2);
  EXPECT_EQ(turns(group), "3");
}

TEST(ChunkSchedulerTest, TheLongestLoadComesFirst) {
  ChunkScheduler group({{1, 1}, {2, 1}, {3, 1}}, 1);
  group.ask(1, 0, 10);
  group.ask(2, 0, 30);
  group.ask(3, 0, 20);
  EXPECT_EQ(turns(group), "2!");
  group.done(2);
  EXPECT_EQ(turns(group), "3");
  group.done(3);
  EXPECT_EQ(turns(group), "1");
}

TEST(ChunkSchedulerTest, AJobWithMoreThreadsThanCoresRunsAlone) {
  ChunkScheduler group({{1, 8}, {2, 1}}, 2);
  group.ask(1, 0);
  group.ask(2, 0);
  EXPECT_EQ(turns(group), "1!");
  group.done(1);
  EXPECT_EQ(turns(group), "2");
}

std::string threads(ChunkScheduler& group) {
  std::string said;
  for (const ChunkScheduler::Turn& turn : group.step()) {
    said += std::to_string(turn.thread_count) + " ";
  }
  return said;
}

TEST(ChunkSchedulerTest, JobsWithAThreadMinimumShareTheCores) {
  ChunkScheduler group({{1, 4, 1}, {2, 4, 1}, {3, 4, 1}}, 4);
  group.ask(1, 0);
  EXPECT_EQ(threads(group), "1 ") << "two others are still to come";
  group.ask(2, 0);
  EXPECT_EQ(threads(group), "1 ");
  group.ask(3, 0);
  EXPECT_EQ(threads(group), "2 ") << "the last one has what is free";
  for (const uint32_t job : {1, 2, 3}) group.done(job);
  for (const uint32_t job : {1, 2, 3}) group.ask(job, 1);
  EXPECT_EQ(threads(group), "1 1 2 ");
}

TEST(ChunkSchedulerTest, ATurnHasAtLeastTheMinimumOfThreads) {
  ChunkScheduler group({{1, 4, 3}, {2, 2}}, 4);
  group.ask(1, 0);
  group.ask(2, 0);
  EXPECT_EQ(threads(group), "3 ");
  group.done(1);
  EXPECT_EQ(threads(group), "2 ");
}

TEST(ChunkSchedulerTest, AnOverdueTurnFreesItsCores) {
  ChunkScheduler group({{1, 1}, {2, 1}}, 1);
  group.ask(1, 0);
  group.ask(2, 0);
  EXPECT_EQ(turns(group), "1!");
  group.overdue(1);
  EXPECT_EQ(turns(group), "2");
  group.done(2);
  group.ask(2, 1);
  EXPECT_EQ(turns(group), "") << "the chunk is not through";
  EXPECT_EQ(group.holders(), std::vector<uint32_t>{1});
  group.leave(1);
  EXPECT_EQ(turns(group), "2!");
}

TEST(ChunkSchedulerTest, AJobThatSkipsChunksWaitsForTheOthersToFinishThem) {
  ChunkScheduler group({{1, 1}, {2, 1}}, 2);
  group.ask(1, 5);
  group.ask(2, 0);
  EXPECT_EQ(turns(group), "2!");
  group.done(2);
  group.ask(2, 7);
  EXPECT_EQ(turns(group), "1!");
}

TEST(ChunkSchedulerTest, JobsStayWithinOneChunkAndWithinTheCores) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const uint32_t core_count = random() % 4 + 1;
    const uint32_t chunk_count = random() % 20 + 1;
    struct Model {
      uint32_t threads = 1;
      uint32_t threads_min = 1;
      uint32_t busy_threads = 0;
      uint32_t next = 0;
      bool waits = false;
      bool runs = false;
    };
    std::map<uint32_t, Model> jobs;
    std::vector<ChunkScheduler::Member> members;
    for (uint32_t job = 0; job < random() % 5 + 2; ++job) {
      jobs[job].threads = random() % core_count + 1;
      jobs[job].threads_min = random() % jobs[job].threads + 1;
      members.push_back({job, jobs[job].threads, jobs[job].threads_min});
    }
    ChunkScheduler group(members, core_count);
    for (int step = 0; step < 5000 && !jobs.empty(); ++step) {
      for (auto& [id, job] : jobs) {
        if (job.runs && random() % 3 == 0) group.done(id), job.runs = false, ++job.next;
        if (!job.runs && !job.waits && job.next < chunk_count && random() % 2 == 0) {
          group.ask(id, job.next);
          job.waits = true;
        }
      }
      std::erase_if(jobs, [&](const auto& entry) {
        const bool through = entry.second.next == chunk_count || random() % 300 == 0;
        if (through) group.leave(entry.first);
        return through;
      });
      for (const ChunkScheduler::Turn& turn : group.step()) {
        Model& job = jobs.at(turn.job);
        ASSERT_TRUE(job.waits) << "seed " << seed;
        job.waits = false;
        job.runs = true;
        job.busy_threads = turn.thread_count;
        ASSERT_GE(turn.thread_count, job.threads_min) << "seed " << seed;
        ASSERT_LE(turn.thread_count, job.threads) << "seed " << seed;
        for (const auto& [id, other] : jobs) {
          ASSERT_GE(other.next, job.next) << "job " << id << " has not done that, seed " << seed;
        }
      }
      uint32_t busy = 0;
      for (const auto& [id, job] : jobs) busy += job.runs ? job.busy_threads : 0;
      ASSERT_LE(busy, core_count) << "seed " << seed;
    }
    ASSERT_TRUE(jobs.empty()) << "stuck, seed " << seed;
    ASSERT_TRUE(group.empty());
  }
}

}  // namespace
}  // namespace graphlane::share
