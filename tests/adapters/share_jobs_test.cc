// Jobs in processes of their own compute right results, share loads, and do not wait for dead jobs.
#include "tests/adapters/share_fixture.h"

namespace graphlane::share {
namespace {

using ShareJobsTest = ShareTest;

TEST_F(ShareJobsTest, OneJobGetsEachEdgeOnceASweep) {
  ShareJob job = this->job();
  EXPECT_EQ(job.info().vertex_count, kVertices);
  EXPECT_EQ(job.info().edge_count, edges_.size());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sweep(job), hash_);
  const auto statistics = job.statistics();
  EXPECT_EQ(statistics.shared_partitions, 3 * kPartitions);
  EXPECT_EQ(statistics.loaded_partitions, kPartitions) << "there is room for all of them";
}

TEST_F(ShareJobsTest, ManyJobsLoadHardlyMoreThanOne) {
  constexpr int kJobs = 6;
  constexpr int kSweeps = 4;
  budget_bytes_ = 3 * partition_bytes_max();  // nothing stays in memory
  Shared<int> attached;
  Shared<int> through;
  Shared<uint64_t> loaded_bytes;
  Shared<uint64_t> shared_bytes;
  Shared<uint64_t> late;
  std::vector<JobProcess> jobs;
  for (int j = 0; j < kJobs; ++j) {
    jobs.emplace_back([&] {
      ShareJob job = this->job();
      ++*attached;
      attached.await(kJobs);
      for (int i = 0; i < kSweeps; ++i) EXPECT_EQ(sweep(job), hash_);
      if (++*through == kJobs) {
        *loaded_bytes = job.statistics().loaded_bytes;
        *shared_bytes = job.statistics().shared_bytes;
        *late = job.statistics().late;
      }
      through.await(kJobs);
    });
  }
  for (JobProcess& job : jobs) EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(*shared_bytes, kJobs * kSweeps * graph_bytes());
  // A single job loads kSweeps graphs, six separate jobs six times as much. Twice as much leaves
  // room for jobs that end a sweep in different rounds. A job that a busy machine made late has a
  // round of its own.
  EXPECT_LE(*loaded_bytes, (2 * kSweeps + *late) * graph_bytes());
}

TEST_F(ShareJobsTest, PartOfAGraphLargerThanTheBudgetStaysInMemory) {
  budget_bytes_ = graph_bytes() / 2;
  ShareJob job = this->job();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sweep(job), hash_);
  const auto statistics = job.statistics();
  EXPECT_LE(statistics.buffer_bytes_max, budget_bytes_);
  // The whole graph once, then about half of it four times. LRU would load all of it each time.
  EXPECT_LE(statistics.loaded_partitions, kPartitions + 4 * 3 * kPartitions / 4);
}

// Each partition has more than 64 KiB, and a third of that packed.
TEST_F(ShareJobsTest, PackingKeepsMoreThanTheBudgetInMemory) {
  make_grid(320'000, 2);
  budget_bytes_ = graph_bytes() / 10 * 7;
  ShareJob job = this->job();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sweep(job), hash_);
  const auto statistics = job.statistics();
  EXPECT_LE(statistics.buffer_bytes_max, budget_bytes_);
  EXPECT_LE(statistics.loaded_partitions, kPartitions + 4 * 2)
      << "unpacked, a third of it each time";
}

TEST_F(ShareJobsTest, APackedGraphGivesTheSameEdges) {
  make_grid(320'000, 3);
  budget_bytes_ = graph_bytes() / 2;
  std::vector<JobProcess> jobs;
  for (int j = 0; j < 4; ++j) {
    jobs.emplace_back([&] {
      ShareJob job = this->job();
      for (int i = 0; i < 4; ++i) EXPECT_EQ(sweep(job), hash_);
    });
  }
  for (JobProcess& job : jobs) EXPECT_EQ(job.wait(), 0);
}

// The number of partitions that this process has mapped.
size_t mapped_partitions() {
  size_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    count += line.find("graphlane-share") != line.npos;
  }
  return count;
}

TEST_F(ShareJobsTest, AGraphThatFitsTheBudgetIsMappedOnce) {
  ShareJob job = this->job();
  EXPECT_EQ(sweep(job), hash_);
  EXPECT_EQ(mapped_partitions(), kPartitions);
  EXPECT_EQ(sweep(job), hash_);
  EXPECT_EQ(mapped_partitions(), kPartitions);
}

TEST_F(ShareJobsTest, AGraphLargerThanTheBudgetIsNotKeptMapped) {
  budget_bytes_ = graph_bytes() - 1;
  ShareJob job = this->job();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(sweep(job), hash_);
    EXPECT_EQ(mapped_partitions(), 0u);
  }
}

TEST_F(ShareJobsTest, ALoneJobHasAllItsThreads) {
  graphlane_share_options options = this->options();
  options.thread_count = 3;
  options.thread_count_min = 1;
  ShareJob job = ShareJob::grid(dir_.c_str(), options);
  job.sweep([](const graphlane_share_chunk& chunk) { EXPECT_EQ(chunk.thread_count, 3u); });
}

TEST_F(ShareJobsTest, AJobComesWhileAnotherIsInItsSweep) {
  ShareJob first = job();
  uint32_t partition;
  ASSERT_EQ(graphlane_share_sharing(first.get(), &partition), 1);
  JobProcess second([&] {
    ShareJob job = this->job();
    EXPECT_EQ(sweep(job), hash_);
  });
  graphlane_share_chunk chunk;
  uint64_t sum = 0;
  do {
    while (graphlane_share_start(first.get(), &chunk) == 1) {
      sum += hash_of(chunk.data, chunk.size_bytes);
    }
  } while (graphlane_share_sharing(first.get(), &partition) == 1);
  EXPECT_EQ(sum, hash_);
  EXPECT_EQ(second.wait(), 0);
}

// A mishap hits a job in its fifth chunk, while three others work.
class MishapTest : public ShareTest {
 protected:
  // The others' sweeps are right and end, whatever that job does.
  void others_go_on(const std::function<void()>& mishap,
                    const std::function<void(JobProcess&)>& then) {
    Shared<int> attached;
    Shared<int> through;
    JobProcess unlucky([&] {
      ShareJob job = this->job();
      ++*attached;
      attached.await(4);
      int chunk_count = 0;
      EXPECT_EQ(sweep(job,
                      [&] {
                        if (++chunk_count == 5) mishap();
                      }),
                hash_);
      EXPECT_EQ(sweep(job), hash_);
    });
    std::vector<JobProcess> others;
    for (int j = 0; j < 3; ++j) {
      others.emplace_back([&] {
        ShareJob job = this->job();
        ++*attached;
        attached.await(4);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(sweep(job), hash_);
        ++*through;
        through.await(3);
      });
    }
    for (JobProcess& other : others) EXPECT_EQ(other.wait(), 0);
    others_are_through_->store(1);
    then(unlucky);
  }

  Shared<int> others_are_through_;
};

TEST_F(MishapTest, AKilledJobHoldsNoJobUp) {
  others_go_on([] { ::kill(::getpid(), SIGKILL); },
               [](JobProcess& job) { EXPECT_EQ(job.wait(), -SIGKILL); });
}

TEST_F(MishapTest, AStoppedJobHoldsNoJobUpAndCatchesUp) {
  others_go_on([] { ::raise(SIGSTOP); },
               [](JobProcess& job) {
                 job.await_stop();
                 job.send(SIGCONT);
                 EXPECT_EQ(job.wait(), 0);
               });
}

TEST_F(MishapTest, ASpinningJobHoldsNoJobUpAndCatchesUp) {
  others_go_on(
      [this] {
        while (others_are_through_->load() == 0) {
        }
      },
      [](JobProcess& job) { EXPECT_EQ(job.wait(), 0); });
}

// Such a job once shared partitions with the others, which then waited for ever: a late job is not
// found late again.
TEST_F(MishapTest, ALateJobThatStopsAgainHoldsNoJobUp) {
  Shared<int> attached;
  Shared<int> stops;
  Shared<int> left_behind;
  const auto crowding_job = [this] {
    graphlane_share_options options = this->options();
    options.thread_count = 4096;  // no core is ever free: jobs get what is open together
    return ShareJob::grid(dir_.c_str(), options);
  };
  JobProcess unlucky([&] {
    ShareJob job = crowding_job();
    ++*attached;
    attached.await(3);
    // In its first partition and, after it has caught up, in a shared one.
    const uint64_t chunk_count = graph_bytes() / kPartitions / job.statistics().chunk_bytes;
    uint64_t chunk = 0;
    EXPECT_EQ(sweep(job,
                    [&] {
                      if (++chunk != chunk_count / 2 && chunk != 4 * chunk_count) return;
                      ++*stops;
                      ::raise(SIGSTOP);
                    }),
              hash_);
  });
  std::vector<JobProcess> others;
  for (int j = 0; j < 2; ++j) {
    others.emplace_back([&] {
      ShareJob job = crowding_job();
      ++*attached;
      attached.await(3);
      const auto slow_sweep = [&] { EXPECT_EQ(sweep(job, [] { ::usleep(300); }), hash_); };
      while (job.statistics().late == 0) slow_sweep();
      ++*left_behind;
      while (stops->load() < 2) slow_sweep();
      for (int i = 0; i < 2; ++i) slow_sweep();
    });
  }
  left_behind.await(2);
  unlucky.await_stop();
  unlucky.send(SIGCONT);
  for (JobProcess& other : others) EXPECT_EQ(other.wait(), 0);
  unlucky.await_stop();
  unlucky.send(SIGCONT);
  EXPECT_EQ(unlucky.wait(), 0);
}

TEST_F(ShareJobsTest, AJobThatIsStoppedWhileItWaitsHoldsNoJobUp) {
  ShareJob first = job();
  uint32_t partition;
  ASSERT_EQ(graphlane_share_sharing(first.get(), &partition), 1);
  Shared<int> attached;
  JobProcess stopped([&] {
    ShareJob job = this->job();
    ++*attached;
    EXPECT_EQ(sweep(job), hash_);
  });
  attached.await(1);
  stopped.send(SIGSTOP);
  stopped.await_stop();
  graphlane_share_chunk chunk;
  uint64_t sum = 0;
  do {
    while (graphlane_share_start(first.get(), &chunk) == 1) {
      sum += hash_of(chunk.data, chunk.size_bytes);
    }
  } while (graphlane_share_sharing(first.get(), &partition) == 1);
  EXPECT_EQ(sum, hash_);
  EXPECT_EQ(sweep(first), hash_);
  stopped.send(SIGCONT);
  EXPECT_EQ(stopped.wait(), 0);
}

TEST_F(ShareJobsTest, ACoordinatorThatDiesIsReplaced) {
  Shared<int> killed;
  std::vector<JobProcess> jobs;
  Shared<int> in_sweep;
  for (int j = 0; j < 3; ++j) {
    jobs.emplace_back([&] {
      ShareJob job = this->job();
      int chunk_count = 0;
      EXPECT_EQ(sweep(job,
                      [&] {
                        if (++chunk_count != 3) return;
                        ++*in_sweep;
                        killed.await(1);
                      }),
                hash_);
      EXPECT_EQ(sweep(job), hash_);
    });
  }
  in_sweep.await(3);
  ::kill(coordinator(), SIGKILL);
  *killed = 1;
  for (JobProcess& job : jobs) EXPECT_EQ(job.wait(), 0);
}

TEST_F(ShareJobsTest, AGraphThatChangesWhileItsCoordinatorIsGoneIsAnError) {
  ShareJob job = this->job();
  EXPECT_EQ(sweep(job), hash_);
  ::kill(coordinator(), SIGKILL);
  make_grid(20'000, 2);
  uint32_t partition;
  EXPECT_EQ(graphlane_share_sharing(job.get(), &partition), -ESTALE);
  EXPECT_EQ(graphlane_share_error(), path("column") + ": changed while jobs use it");
}

TEST_F(ShareJobsTest, JobsThatComeAndDieAtRandomLeaveNothingBehind) {
  ShareJob resident = job();
  ASSERT_EQ(sweep(resident), hash_);
  const pid_t coordinator = this->coordinator();
  const size_t descriptors = descriptor_count(coordinator);
  const auto seed = static_cast<uint32_t>(::getpid());
  std::mt19937 random(seed);
  std::vector<std::pair<JobProcess, bool>> jobs;  // and whether it will die
  for (int i = 0; i < 60; ++i) {
    const uint32_t fate = random();
    const bool dies = fate % 3 == 0;
    jobs.emplace_back(JobProcess([&] {
                        std::mt19937 chance(fate);
                        ShareJob job = this->job();
                        for (uint32_t sweeps = chance() % 4 + 1; sweeps > 0 || dies; --sweeps) {
                          EXPECT_EQ(sweep(job,
                                          [&] {
                                            if (dies && chance() % 40 == 0) {
                                              ::kill(::getpid(), SIGKILL);
                                            }
                                            if (chance() % 8 == 0) ::usleep(chance() % 2000);
                                          }),
                                    hash_);
                        }
                      }),
                      dies);
    ::usleep(random() % 20'000);
    if (jobs.size() < 8) continue;
    EXPECT_EQ(jobs.front().first.wait(), jobs.front().second ? -SIGKILL : 0) << "seed " << seed;
    jobs.erase(jobs.begin());
  }
  for (auto& [job, dies] : jobs) EXPECT_EQ(job.wait(), dies ? -SIGKILL : 0) << "seed " << seed;
  EXPECT_EQ(sweep(resident), hash_);
  const auto statistics = resident.statistics();
  EXPECT_EQ(statistics.jobs, 1u);
  EXPECT_LE(statistics.buffer_bytes, graph_bytes());
  EXPECT_EQ(this->coordinator(), coordinator);
  EXPECT_LE(descriptor_count(coordinator), descriptors + 2);
}

TEST_F(ShareJobsTest, TheCoordinatorEndsWhenItIsIdle) {
  {
    ShareJob job = this->job();
  }
  await_end_of_coordinators();
  ShareJob job = this->job();
  EXPECT_EQ(sweep(job), hash_);
}

TEST_F(ShareJobsTest, JobsThatStartAtOnceShareOneCoordinator) {
  for (int round = 0; round < 5; ++round) {
    Shared<int> attached;
    std::vector<JobProcess> jobs;
    for (int j = 0; j < 6; ++j) {
      jobs.emplace_back([&] {
        ShareJob job = this->job();
        ++*attached;
        attached.await(6);
        EXPECT_EQ(job.statistics().jobs, 6u);
        ++*attached;
        attached.await(12);
      });
    }
    for (JobProcess& job : jobs) EXPECT_EQ(job.wait(), 0);
    await_end_of_coordinators();
  }
}

TEST_F(ShareJobsTest, ThreadsOfOneProcessMayBeJobsToo) {
  std::vector<std::thread> threads;
  for (int j = 0; j < 3; ++j) {
    threads.emplace_back([&] {
      ShareJob job = this->job();
      for (int i = 0; i < 2; ++i) EXPECT_EQ(sweep(job), hash_);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ShareJobsTest, BuffersStayWithinTheBudget) {
  budget_bytes_ = partition_bytes_max();  // of one partition
  Shared<int> attached;
  std::vector<JobProcess> jobs;
  for (int j = 0; j < 3; ++j) {
    jobs.emplace_back([&] {
      ShareJob job = this->job();
      ++*attached;
      attached.await(3);
      for (int i = 0; i < 2; ++i) EXPECT_EQ(sweep(job), hash_);
      EXPECT_LE(job.statistics().buffer_bytes_max, budget_bytes_);
    });
  }
  for (JobProcess& job : jobs) EXPECT_EQ(job.wait(), 0);
}

// Two graphs of one file, which is cut differently.
using LayoutsTest = ShareTest;

// Each once had the whole budget.
TEST_F(LayoutsTest, ShareOneBudget) {
  budget_bytes_ = graph_bytes();
  ShareJob first = job();
  EXPECT_EQ(sweep(first), hash_);
  EXPECT_EQ(first.statistics().buffer_bytes, budget_bytes_);
  ShareJob second = job_by_parts(20);
  uint64_t most = 0;
  const auto look = [&] {
    most = std::max(most, first.statistics().buffer_bytes + second.statistics().buffer_bytes);
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(sweep(second, look), hash_);
    EXPECT_EQ(sweep(first, look), hash_);
  }
  EXPECT_LE(most, budget_bytes_);
  EXPECT_GE(first.statistics().buffer_bytes, budget_bytes_ / 3);
  EXPECT_GE(second.statistics().buffer_bytes, budget_bytes_ / 3);
}

TEST_F(LayoutsTest, DoNotWaitForEachOther) {
  budget_bytes_ = 3 * partition_bytes_max();
  std::vector<JobProcess> jobs;
  Shared<int> attached;
  for (const uint32_t partition_count : {16u, 20u, 25u}) {
    jobs.emplace_back([&, partition_count] {
      ShareJob job = job_by_parts(partition_count);
      ++*attached;
      attached.await(3);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(sweep(job), hash_);
      EXPECT_EQ(job.statistics().late, 0u);
    });
  }
  for (JobProcess& job : jobs) EXPECT_EQ(job.wait(), 0);
}

TEST_F(LayoutsTest, ShareTheBudgetThatAResidentOneLeaves) {
  budget_bytes_ = graph_bytes() + graph_bytes() / 6;
  ShareJob resident = job();
  EXPECT_EQ(sweep(resident), hash_);
  EXPECT_EQ(mapped_partitions(), kPartitions);
  ShareJob other = job_by_parts(8);
  EXPECT_EQ(sweep(other), hash_);
  EXPECT_LE(other.statistics().buffer_bytes_max, graph_bytes() / 6);
  ShareJob last = job_by_parts(4);
  EXPECT_EQ(sweep(last), hash_);
  EXPECT_EQ(last.statistics().buffer_bytes_max, graph_bytes() / 4) << "one of them, on top";
}

TEST_F(ShareJobsTest, APartitionLargerThanTheBudgetIsRefused) {
  budget_bytes_ = partition_bytes_max() - 1;
  graphlane_share* job = nullptr;
  const auto options = this->options();
  EXPECT_EQ(graphlane_share_init_grid(dir_.c_str(), &options, &job, nullptr), -EFBIG);
  EXPECT_NE(std::string(graphlane_share_error()).find("the buffers' budget is"), std::string::npos);
}

TEST_F(ShareJobsTest, AGraphThatChangesUnderAJobIsAnError) {
  budget_bytes_ = 2 * partition_bytes_max();  // otherwise all of the graph as it was is in memory
  ShareJob job = this->job();
  EXPECT_EQ(sweep(job), hash_);
  make_grid(20'000, 2);
  uint32_t partition;
  int result = graphlane_share_sharing(job.get(), &partition);
  while (result == 1) result = graphlane_share_sharing(job.get(), &partition);
  EXPECT_EQ(result, -ESTALE);
  EXPECT_STREQ(graphlane_share_error(), "column: changed while jobs use it");
  ShareJob later = this->job();
  EXPECT_EQ(sweep(later), hash_);
}

}  // namespace
}  // namespace graphlane::share
