#include "adapters/share/schedule/global_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

namespace graphlane::share {
namespace {

constexpr uint32_t kTablePartitions = 6;

PartitionSet some(std::initializer_list<uint32_t> members) {
  PartitionSet set(kTablePartitions);
  for (const uint32_t p : members) set.add(p);
  return set;
}

class GlobalTableTest : public testing::Test {
 protected:
  explicit GlobalTableTest(GlobalTable::Batching batching = {})
      : table_(kTablePartitions, 1, std::move(batching)) {}

  void begin(JobId job, PartitionSet active) {
    table_.add_job(job, 1);
    table_.begin_sweep(job, std::move(active));
    table_.ask(job);
  }
  // Loads and grants what is open. The result "1:0 2:0" has jobs and their partitions.
  std::string step() {
    std::string said;
    for (int i = 0; i < 2; ++i) {
      const GlobalTable::Step step = table_.step();
      for (const JobId id : step.ended) said += std::to_string(id) + ":end ";
      for (const auto& grant : step.grants) {
        for (const JobId id : grant.jobs) {
          said += std::to_string(id) + ":" + joined(table_.reads(id)) + " ";
        }
      }
      const std::vector<GlobalTable::Batch> wanted = table_.wanted();
      for (const uint32_t p : wanted[0]) {
        table_.set_loaded(p, true);
        ++load_count_;
        loads_ += std::to_string(p) + " ";
      }
    }
    unload(table_);
    if (!said.empty()) said.pop_back();
    return said;
  }
  static std::string joined(const GlobalTable::Batch& batch) {
    std::string text;
    for (const uint32_t p : batch) text += (text.empty() ? "" : "+") + std::to_string(p);
    return text;
  }
  static void unload(GlobalTable& table) {
    const PartitionSet unused = table.unused();
    for (uint32_t p = 0; p < unused.partition_count(); ++p) {
      if (unused.has(p)) table.set_loaded(p, false);
    }
  }
  std::string ask(JobId job) {
    table_.ask(job);
    return step();
  }

  GlobalTable table_;
  int load_count_ = 0;
  std::string loads_;  // in their order
};

TEST_F(GlobalTableTest, JobsShareCommonPartitions) {
  begin(1, some({0, 2}));
  begin(2, some({0, 2}));
  EXPECT_EQ(step(), "1:0 2:0");
  EXPECT_EQ(ask(1), "");  // no core is free: it waits until 2 has asked too
  EXPECT_EQ(ask(2), "1:2 2:2");
  ask(1);
  EXPECT_EQ(load_count_, 2);
}

TEST_F(GlobalTableTest, AJobThatDoesNotNeedTheOpenPartitionIsSuspended) {
  begin(1, some({0, 1, 2}));
  begin(2, some({2}));
  // Formula 5: 2 has 1/1 × 2.
  EXPECT_EQ(step(), "1:2 2:2");
  EXPECT_EQ(ask(2), "2:end");
  EXPECT_EQ(ask(1), "");  // waits a moment for job 2 to come back
  table_.stop_gathering(2);
  EXPECT_EQ(step(), "1:0");
}

// Formula 5 uses the current needs of jobs: in each round, the units that job 2 needs come first.
TEST_F(GlobalTableTest, EachRoundHasItsOwnOrder) {
  begin(1, some({0, 1, 2, 3}));
  begin(2, some({3}));
  EXPECT_EQ(step(), "1:3 2:3");
  EXPECT_EQ(ask(2), "2:end");
  table_.stop_gathering(2);
  for (const char* given : {"1:0", "1:1", "1:2", "1:end"}) EXPECT_EQ(ask(1), given);
  EXPECT_EQ(loads_, "3 0 1 2 ");

  loads_.clear();
  table_.begin_sweep(2, some({1}));
  table_.ask(2);
  table_.begin_sweep(1, some({0, 1, 2, 3}));
  EXPECT_EQ(ask(1), "1:2") << "which is open";
  EXPECT_EQ(ask(1), "1:1 2:1");
  EXPECT_EQ(ask(2), "2:end");
  table_.stop_gathering(2);
  for (const char* given : {"1:0", "1:3", "1:end"}) EXPECT_EQ(ask(1), given);
  EXPECT_EQ(loads_, "1 0 3 ");
}

TEST_F(GlobalTableTest, AnOpenPartitionStaysOpenWhileAJobNeedsIt) {
  GlobalTable table(2, 2);  // a core is free, so no job waits
  for (const JobId job : {1, 2}) {
    table.add_job(job, 1);
    table.begin_sweep(job, PartitionSet(2, true));
    table.ask(job);
  }
  table.step();
  table.set_loaded(0, true);
  EXPECT_EQ(table.step().grants[0].jobs, (std::vector<JobId>{1, 2}));
  table.ask(1);
  table.set_loaded(1, true);
  EXPECT_EQ(table.step().grants[0].units, GlobalTable::Batch{1});
  table.ask(1);
  EXPECT_EQ(table.step().ended, std::vector<JobId>{1});
  PartitionSet first(2);
  first.add(0);
  table.begin_sweep(1, first);
  table.ask(1);
  EXPECT_TRUE(table.step().grants.empty()) << "job 2 still needs 1";
  EXPECT_EQ(table.holders().computing, std::vector<JobId>{2});
}

TEST_F(GlobalTableTest, LateJobsHoldNoJobUp) {
  begin(1, some({0, 1}));
  begin(2, some({0, 1}));
  EXPECT_EQ(step(), "1:0 2:0");
  EXPECT_EQ(ask(1), "");
  EXPECT_EQ(table_.holders().computing, std::vector<JobId>{2});
  table_.set_late(2);
  EXPECT_EQ(step(), "1:1");
  EXPECT_EQ(ask(1), "1:end");
  // It comes back and gets the rest by itself.
  EXPECT_EQ(ask(2), "2:1");
  EXPECT_EQ(ask(2), "2:end");
}

class BatchTest : public GlobalTableTest {
 protected:
  BatchTest()
      : GlobalTableTest({.unit_bytes = {10, 10, 10, 40, 5, 5},
                         .batch_bytes = 30,
                         .ahead_bytes = 12,
                         .first_of_same = {}}) {}
};

TEST_F(BatchTest, JoinsUnitsThatFitOneChunk) {
  begin(1, PartitionSet(kTablePartitions, true));
  begin(2, some({1, 4, 5}));
  EXPECT_EQ(step(), "1:1+4+5+0 2:1+4+5");
}

// Units 0 to 2 are a partition, 3 and 4, and 5.
class CutTest : public GlobalTableTest {
 protected:
  CutTest()
      : GlobalTableTest({.unit_bytes = {1, 1, 1, 1, 1, 1}, .first_of_same = {0, 0, 0, 3, 3, 5}}) {}
};

TEST_F(CutTest, AJobThatJoinsInTheMiddleBeginsWithTheNextPartition) {
  begin(1, PartitionSet(kTablePartitions, true));
  EXPECT_EQ(step(), "1:0");
  EXPECT_EQ(ask(1), "1:1");
  begin(2, PartitionSet(kTablePartitions, true));
  EXPECT_EQ(ask(1), "1:2");
  EXPECT_EQ(ask(1), "1:3 2:3");
  EXPECT_EQ(ask(1), "");
  EXPECT_EQ(ask(2), "1:4 2:4");
  EXPECT_EQ(ask(1), "");
  EXPECT_EQ(ask(2), "1:5 2:5");
  EXPECT_EQ(ask(1), "1:end");
  table_.stop_gathering(1);
  EXPECT_EQ(ask(2), "2:0");
  EXPECT_EQ(ask(2), "2:1");
  EXPECT_EQ(ask(2), "2:2");
  EXPECT_EQ(ask(2), "2:end");
}

TEST_F(CutTest, AJobThatFellBehindInTheMiddleResumesThere) {
  begin(1, PartitionSet(kTablePartitions, true));
  begin(2, PartitionSet(kTablePartitions, true));
  EXPECT_EQ(step(), "1:0 2:0");
  EXPECT_EQ(ask(1), "");
  table_.set_late(2);
  EXPECT_EQ(step(), "1:1");
  EXPECT_EQ(ask(1), "1:2");
  EXPECT_EQ(ask(1), "1:3");
  EXPECT_EQ(ask(2), "");  // not 3, as it needs 1
  EXPECT_EQ(ask(1), "1:4");
  EXPECT_EQ(ask(1), "1:5 2:1");
  EXPECT_EQ(ask(2), "2:2");
}

TEST_F(CutTest, LeavingAPartitionDropsItsRest) {
  begin(1, PartitionSet(kTablePartitions, true));
  EXPECT_EQ(step(), "1:0");
  table_.leave_partition(1);
  EXPECT_EQ(ask(1), "1:3");
}

TEST_F(CutTest, AFailedUnitEndsItsPartition) {
  begin(1, PartitionSet(kTablePartitions, true));
  EXPECT_EQ(step(), "1:0");
  table_.ask(1);
  (void)table_.step();
  EXPECT_EQ(table_.give_up(1), std::vector<JobId>{1});
  table_.take_back(1);
  EXPECT_EQ(ask(1), "1:3");
}

TEST_F(CutTest, AJobResumesAPartitionBegunElsewhere) {
  table_.add_job(1, 1);
  table_.begin_sweep(1, some({2, 3, 4, 5}), 2);
  table_.add_job(2, 1);
  table_.begin_sweep(2, some({5}));
  table_.ask(2);
  EXPECT_EQ(step(), "2:5");
  EXPECT_EQ(ask(1), "1:2");
  EXPECT_EQ(ask(1), "1:3");
}

TEST_F(BatchTest, EachJobGetsTheUnitsThatItNeeds) {
  begin(1, PartitionSet(kTablePartitions, true));
  begin(2, PartitionSet(kTablePartitions, true));
  EXPECT_EQ(step(), "1:0+1+2 2:0+1+2");
  begin(3, some({2}));
  EXPECT_EQ(step(), "3:2");
  EXPECT_EQ(load_count_, 3);
  ask(1);
  EXPECT_EQ(ask(2), "1:3 2:3") << "larger than a batch: by itself";
}

TEST_F(BatchTest, PrefetchesUpToTheLimit) {
  begin(1, PartitionSet(kTablePartitions, true));
  table_.step();
  const std::vector<GlobalTable::Batch> wanted = table_.wanted();
  EXPECT_EQ(wanted, (std::vector<GlobalTable::Batch>{{0, 1, 2}, {3}}));
}

// A loaders' unit is loaded by the job that asks for it: until job 2 asks, unit 1 is not.
TEST_F(GlobalTableTest, AComputingJobThatNeedsTheOpenUnitIsAHolder) {
  begin(2, some({0, 1}));
  EXPECT_EQ(step(), "2:0");
  begin(1, some({2}));
  EXPECT_TRUE(table_.step().grants.empty());
  EXPECT_EQ(table_.open(), GlobalTable::Batch{1});
  EXPECT_EQ(table_.holders().computing, std::vector<JobId>{2});
  table_.set_late(2);
  EXPECT_EQ(step(), "1:2");
}

TEST_F(GlobalTableTest, ASweepBeginsWithTheOpenUnit) {
  begin(1, PartitionSet(kTablePartitions, true));
  EXPECT_EQ(step(), "1:0");
  EXPECT_EQ(ask(1), "1:1");
  EXPECT_EQ(ask(1), "1:2");
  begin(2, PartitionSet(kTablePartitions, true));
  EXPECT_EQ(step(), "2:2");  // still there: no load
  EXPECT_EQ(ask(1), "");
  EXPECT_EQ(ask(2), "1:3 2:3");
  EXPECT_EQ(load_count_, 4);
}

TEST_F(GlobalTableTest, TheOpenPartitionServesTheNextSweepToo) {
  begin(1, some({0, 1}));
  EXPECT_EQ(step(), "1:0");
  EXPECT_EQ(ask(1), "1:1");
  EXPECT_EQ(ask(1), "1:end");
  table_.begin_sweep(1, some({0, 1}));
  EXPECT_EQ(ask(1), "1:1");
  EXPECT_EQ(ask(1), "1:0");
  EXPECT_EQ(load_count_, 3) << "four partitions were given";
}

TEST_F(GlobalTableTest, UnneededUnitsAreUnused) {
  begin(1, some({0, 1}));
  step();
  EXPECT_TRUE(table_.unused().empty());
  table_.set_loaded(1, true);  // ahead
  EXPECT_TRUE(table_.unused().empty());
  table_.remove_job(1);
  EXPECT_EQ(table_.unused(), some({0, 1}));
}

TEST_F(GlobalTableTest, AFailedLoadIsReportedToWaitingJobs) {
  begin(1, some({0}));
  table_.add_job(2, 1);
  table_.begin_sweep(2, some({0}));
  table_.step();
  EXPECT_EQ(table_.give_up(0), std::vector<JobId>{1});
  EXPECT_FALSE(table_.needs(1, 0));
  EXPECT_TRUE(table_.needs(2, 0)) << "it has not asked: it would never learn";
}

// A computing job gets no message, but still needs the unit. The unit was once loaded repeatedly
// until that job asked.
TEST_F(GlobalTableTest, AFailedLoadIsTriedAgainForTheNextAsker) {
  begin(1, some({0, 1}));
  begin(2, some({0, 1, 2}));
  EXPECT_EQ(step(), "1:0 2:0");
  using Batches = std::vector<GlobalTable::Batch>;
  EXPECT_EQ(table_.wanted(), (Batches{{}, {1}}));
  EXPECT_TRUE(table_.give_up(1).empty());
  EXPECT_EQ(table_.wanted(), (Batches{{}, {}}));
  table_.ask(1);
  EXPECT_EQ(table_.wanted(), (Batches{{}, {1}}));
  EXPECT_EQ(table_.give_up(1), std::vector<JobId>{1});
  table_.take_back(1);
  EXPECT_EQ(table_.wanted(), (Batches{{}, {}})) << "job 2 has not asked";
  EXPECT_EQ(ask(2), "2:1") << "it can be loaded after all";
}

// Random joins, requests, stalls and deaths of jobs keep the invariants.
TEST_F(GlobalTableTest, EveryJobGetsEachOfItsPartitionsOnce) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const uint32_t count = random() % 10 + 1;
    GlobalTable::Batching batching{.unit_bytes = {},
                                   .batch_bytes = random() % 5,
                                   .ahead_bytes = random() % 4,
                                   .first_of_same = {}};
    for (uint32_t p = 0; p < count; ++p) {
      batching.unit_bytes.push_back(random() % 3);
      const bool goes_on = p > 0 && random() % 2 == 0;  // the partition of the previous unit
      batching.first_of_same.push_back(goes_on ? batching.first_of_same.back() : p);
    }
    GlobalTable table(count, random() % 4 + 1, batching);
    struct Model {
      std::set<uint32_t> owed;
      std::optional<uint32_t> within;  // first_of() the last unit that it was given
      bool waits = false;
      int sweeps_left = 0;
    };
    std::map<JobId, Model> jobs;
    JobId last = 0;
    const auto begin_sweep = [&](JobId id) {
      jobs[id].within.reset();
      PartitionSet active(count);
      for (uint32_t p = 0; p < count; ++p) {
        if (random() % 2 == 0) active.add(p), jobs[id].owed.insert(p);
      }
      table.begin_sweep(id, active);
    };
    int idle_steps = 0;
    for (int step = 0; step < 3000 && (last < 8 || !jobs.empty()); ++step) {
      if (last < 8 && random() % 10 == 0) {
        table.add_job(++last, random() % 3 + 1);
        jobs[last].sweeps_left = static_cast<int>(random() % 4);
        begin_sweep(last);
      }
      for (auto& [id, job] : jobs) {
        if (!job.waits && random() % 4 == 0) table.ask(id), job.waits = true;
      }
      if (!jobs.empty() && random() % 40 == 0) {
        const auto victim = std::next(jobs.begin(), random() % jobs.size());
        table.remove_job(victim->first);
        jobs.erase(victim);
      }
      const auto holders = table.holders();
      if (random() % 5 == 0) {
        for (const JobId id : holders.computing) table.set_late(id);
        for (const JobId id : holders.gathered) table.stop_gathering(id);
      }
      const GlobalTable::Step done = table.step();
      for (const auto& grant : done.grants) {
        for (const JobId id : grant.jobs) {
          ASSERT_TRUE(jobs.at(id).waits) << "seed " << seed;
          ASSERT_FALSE(table.reads(id).empty()) << "seed " << seed;
          for (const uint32_t p : table.reads(id)) {
            Model& job = jobs.at(id);
            const uint32_t first = batching.first_of(p);
            const auto owed = [&](uint32_t partition) {
              const auto next = job.owed.lower_bound(partition);
              return next != job.owed.end() && batching.first_of(*next) == partition
                         ? next
                         : job.owed.end();
            };
            ASSERT_TRUE(owed(first) != job.owed.end() && *owed(first) == p)
                << "not in order, seed " << seed;
            if (job.within && *job.within != first) {
              ASSERT_TRUE(owed(*job.within) == job.owed.end())
                  << "another partition between, seed " << seed;
            }
            job.within = first;
            job.owed.erase(p);
          }
          jobs.at(id).waits = false;
        }
      }
      for (const JobId id : done.ended) {
        ASSERT_TRUE(jobs.at(id).owed.empty()) << "seed " << seed;
        jobs.at(id).waits = false;
        if (jobs.at(id).sweeps_left-- > 0) {
          begin_sweep(id);
        } else {
          table.remove_job(id);
          jobs.erase(id);
        }
      }
      unload(table);
      for (const GlobalTable::Batch& batch : table.wanted()) {
        for (const uint32_t p : batch) {
          if (random() % 2 == 0) table.set_loaded(p, true);
        }
      }
      idle_steps = done.grants.empty() && done.ended.empty() ? idle_steps + 1 : 0;
      ASSERT_LT(idle_steps, 500) << "stuck, seed " << seed;
    }
    ASSERT_TRUE(jobs.empty()) << "not through, seed " << seed;
  }
}

}  // namespace
}  // namespace graphlane::share
