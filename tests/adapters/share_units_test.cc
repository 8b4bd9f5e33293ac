// Partitions that are large compared with the memory are loaded in pieces. Jobs still see whole
// partitions.
#include "tests/adapters/share_fixture.h"
#include "tests/sizes.h"

#include <set>

namespace graphlane::share {
namespace {

constexpr uint32_t kParts = 3;

class ShareUnitsTest : public ShareTest {
 protected:
  // Each third has 6 MB, and more than the budget.
  ShareUnitsTest() {
    make_grid(2'250'000, 7);
    budget_bytes_ = 4 * kMiB;
  }

  // With chunks of about so many bytes by formula 1, if this machine's cache is as large. 0 stands
  // for the largest.
  ShareJob job(uint64_t chunk_bytes = 0) const {
    graphlane_share_options options = this->options();
    const LastLevelCache cache = read_last_level_cache();
    const uint64_t largest = cache.size_bytes / 8 * 7 / cache.core_count;
    options.vertex_bytes = 8;
    if (chunk_bytes != 0 && chunk_bytes < largest) {
      const uint64_t rest_bytes = largest - chunk_bytes;
      options.vertex_bytes =
          static_cast<uint32_t>(graph_bytes() / kVertices * rest_bytes / chunk_bytes);
    }
    return job_by_parts(kParts, options);
  }
  uint64_t part_bytes() const { return graph_bytes() / kParts; }
  uint64_t hash_of_part(uint32_t p) const {
    return hash_of(reinterpret_cast<const char*>(edges_.data()) + p * part_bytes(), part_bytes());
  }
  static std::vector<uint64_t> range(uint32_t begin, uint32_t end) {
    std::vector<uint64_t> set((kVertices + 63) / 64);
    for (uint32_t v = begin; v < end; ++v) set[v / 64] |= uint64_t{1} << v % 64;
    return set;
  }

  // One sweep: each partition comes once, whole, with its chunks in order.
  void expect_whole_sweep(ShareJob& job, const std::function<void()>& at_chunk = [] {}) const {
    std::set<uint32_t> seen;
    uint32_t partition;
    while (graphlane_share_sharing(job.get(), &partition) == 1) {
      EXPECT_TRUE(seen.insert(partition).second) << "partition " << partition << " comes twice";
      uint64_t sum = 0;
      uint32_t chunk_count = 0;
      graphlane_share_chunk chunk;
      while (graphlane_share_start(job.get(), &chunk) == 1) {
        EXPECT_EQ(chunk.partition, partition);
        EXPECT_EQ(chunk.chunk, chunk_count++);
        sum += hash_of(chunk.data, chunk.size_bytes);
        at_chunk();
      }
      EXPECT_EQ(sum, hash_of_part(partition));
    }
    EXPECT_EQ(seen.size(), kParts);
  }
};

TEST_F(ShareUnitsTest, APartitionMayBeLargerThanTheBudget) {
  ASSERT_GT(part_bytes(), budget_bytes_);
  ShareJob job = this->job();
  for (int i = 0; i < 3; ++i) expect_whole_sweep(job);
  EXPECT_LE(job.statistics().buffer_bytes_max, budget_bytes_);
}

TEST_F(ShareUnitsTest, ChunksAreWhole) {
  ShareJob job = this->job(300'000);
  ASSERT_LT(job.statistics().chunk_bytes, 400'000u);
  for (int i = 0; i < 2; ++i) expect_whole_sweep(job);
}

TEST_F(ShareUnitsTest, JobsThatComeAtAnyTimeSeeWholePartitions) {
  constexpr int kJobs = 6;
  Shared<uint64_t> loaded_bytes;
  Shared<int> through;
  std::vector<JobProcess> jobs;
  for (int j = 0; j < kJobs; ++j) {
    jobs.emplace_back([&, j] {
      ::usleep(static_cast<unsigned>(j) * 3000);
      ShareJob job = this->job();
      for (int i = 0; i < 4; ++i) expect_whole_sweep(job);
      if (++*through == kJobs) *loaded_bytes = job.statistics().loaded_bytes;
      through.await(kJobs);
    });
  }
  for (JobProcess& job : jobs) EXPECT_EQ(job.wait(), 0);
  EXPECT_LE(*loaded_bytes, kJobs * 4 * graph_bytes() / 2) << "each by itself loads twice as much";
}

TEST_F(ShareUnitsTest, AJobThatStopsInTheMiddleOfAPartitionHoldsNoJobUpAndResumes) {
  Shared<int> stopped;
  JobProcess sleeper([&] {
    ShareJob job = this->job();
    expect_whole_sweep(job, [&] {
      if (++*stopped == 2) ::raise(SIGSTOP);
    });
    expect_whole_sweep(job);
  });
  sleeper.await_stop();
  ShareJob job = this->job();
  for (int i = 0; i < 3; ++i) expect_whole_sweep(job);
  sleeper.send(SIGCONT);
  expect_whole_sweep(job);
  EXPECT_EQ(sleeper.wait(), 0);
}

TEST_F(ShareUnitsTest, AJobMayLeaveAPartitionInTheMiddle) {
  ShareJob job = this->job();
  ShareJob other = this->job();
  for (int i = 0; i < 2; ++i) {
    std::set<uint32_t> seen;
    uint32_t partition;
    while (graphlane_share_sharing(job.get(), &partition) == 1) {
      EXPECT_TRUE(seen.insert(partition).second);
      graphlane_share_chunk chunk;
      uint64_t sum = 0;
      while (graphlane_share_start(job.get(), &chunk) == 1) {
        sum += hash_of(chunk.data, chunk.size_bytes);
        if (partition == 1) break;
      }
      EXPECT_TRUE(partition == 1 || sum == hash_of_part(partition));
    }
    EXPECT_EQ(seen.size(), kParts);
    expect_whole_sweep(other);
  }
}

TEST_F(ShareUnitsTest, UnitsWithoutActiveEdgesAreNotLoaded) {
  ShareJob job = this->job();
  // Blocks of a grid: a quarter of the vertices are sources in one of four.
  const auto few = range(0, 10);
  uint64_t expected = 0;
  for (const TestEdge& edge : edges_) expected += edge.source < 10 ? edge_hash(edge) : 0;
  uint64_t came = UINT64_MAX;
  for (int i = 0; i < 2000 && came > graph_bytes() / 2; ++i) {  // until it is labelled
    came = 0;
    uint64_t sum = 0;
    job.sweep(few.data(), kVertices, [&](const graphlane_share_chunk& chunk) {
      came += chunk.size_bytes;
      for (uint64_t at = 0; at < chunk.size_bytes; at += sizeof(TestEdge)) {
        TestEdge edge;
        std::memcpy(&edge, static_cast<const char*>(chunk.data) + at, sizeof edge);
        if (edge.source < 10) sum += edge_hash(edge);
      }
    });
    EXPECT_EQ(sum, expected);
  }
  EXPECT_LE(came, graph_bytes() / 2);
  expect_whole_sweep(job);
}

TEST_F(ShareUnitsTest, ChangesReachTheirChunks) {
  ShareJob job = this->job();
  ShareJob other = this->job();
  const uint64_t chunk_bytes = job.statistics().chunk_bytes;
  const auto chunk_count = static_cast<uint32_t>((part_bytes() - 1) / chunk_bytes + 1);
  const TestEdge edge{1, 2};
  const auto hash_of_chunk = [&](uint32_t partition, uint32_t k) {
    const uint64_t begin = k * chunk_bytes;
    return hash_of(reinterpret_cast<const char*>(edges_.data()) + partition * part_bytes() + begin,
                   std::min(chunk_bytes, part_bytes() - begin));
  };
  EXPECT_EQ(graphlane_share_mutate(job.get(), 1, chunk_count + 1, &edge, sizeof edge), -EINVAL);
  job.mutate(1, 3, &edge, sizeof edge);            // in the middle
  job.mutate(1, chunk_count, &edge, sizeof edge);  // behind the last
  job.mutate(2, 0, nullptr, 0);
  const uint64_t changed = hash_ - hash_of_chunk(1, 3) + 2 * edge_hash(edge) - hash_of_chunk(2, 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(sweep(job), changed);
  expect_whole_sweep(other);
  other.update(0, 2, &edge, sizeof edge);
  other.update(0, chunk_count, &edge, sizeof edge);
  ShareJob later = this->job();
  EXPECT_EQ(sweep(later), hash_ - hash_of_chunk(0, 2) + 2 * edge_hash(edge));
  expect_whole_sweep(other);
}

// The new coordinator cuts the file as its first job wants.
class ShareUnitsOfAnotherTest : public ShareUnitsTest, public testing::WithParamInterface<int> {};

TEST_P(ShareUnitsOfAnotherTest, JobsInTheMiddleOfAPartitionGoOn) {
  Shared<int> in_sweep;
  Shared<int> replaced;
  std::vector<JobProcess> jobs;
  for (int j = 0; j < 3; ++j) {
    jobs.emplace_back([&, j] {
      ShareJob job = this->job(700'000);
      uint64_t sum = 0;
      int chunk_count = 0;
      job.sweep([&](const graphlane_share_chunk& chunk) {
        sum += hash_of(chunk.data, chunk.size_bytes);
        if (++chunk_count != 2 + 3 * j) return;
        ++*in_sweep;
        replaced.await(1);
      });
      EXPECT_EQ(sum, hash_);
      EXPECT_EQ(sweep(job), hash_);
    });
  }
  in_sweep.await(3);
  const pid_t before = coordinator();
  ::kill(before, SIGKILL);
  ShareJob first = [&] {
    switch (GetParam()) {
      case 0: return job();                                      // units of a chunk
      case 1: return job(400'000);                               // of three smaller ones
      default: budget_bytes_ = uint64_t{1} << 30; return job();  // all of it in memory
    }
  }();
  EXPECT_EQ(sweep(first), hash_);
  *replaced = 1;
  for (JobProcess& job : jobs) EXPECT_EQ(job.wait(), 0);
  expect_whole_sweep(first);
}

INSTANTIATE_TEST_SUITE_P(, ShareUnitsOfAnotherTest, testing::Range(0, 3));

TEST_F(ShareUnitsTest, APartitionThatCannotBeReadEnds) {
  ShareJob job = this->job();
  uint32_t partition;
  graphlane_share_chunk chunk;
  ASSERT_EQ(graphlane_share_sharing(job.get(), &partition), 1);
  ASSERT_EQ(graphlane_share_start(job.get(), &chunk), 1);
  std::ofstream(path("column"), std::ios::binary | std::ios::in | std::ios::app) << "more";
  int failed = 0;
  while ((failed = graphlane_share_start(job.get(), &chunk)) == 1) {
  }
  EXPECT_EQ(failed, -ESTALE);
  EXPECT_EQ(graphlane_share_error(), std::string("column: changed while jobs use it"));
  EXPECT_EQ(graphlane_share_start(job.get(), &chunk), 0) << "of this one there is no more";
}

}  // namespace
}  // namespace graphlane::share
