// Loaders, labels and active vertices, snapshots, turns, and the answers to bad input.
#include <sys/resource.h>
#include <time.h>

#include <cstddef>
#include <set>

#include "adapters/share/coordinator/label_file.h"
#include "iomgr/base/crc32c.h"
#include "tests/adapters/share_fixture.h"
#include "tests/eventually.h"

namespace graphlane::share {
namespace {

std::string bytes_of(const std::vector<TestEdge>& edges) {
  return {reinterpret_cast<const char*>(edges.data()), edges.size() * sizeof(TestEdge)};
}

// --- loaders ------------------------------------------------------------------

class LoaderTest : public ShareTest {
 protected:
  LoaderTest() {
    files_[0] = column_.c_str();
    options_ = options();
    options_.files = files_;
    options_.file_count = 1;
    options_.partition_count = kPartitions;
    options_.load_context = this;
    options_.load = [](void* test, uint32_t partition, void* memory, uint64_t size_bytes) {
      return static_cast<LoaderTest*>(test)->load(partition, memory, size_bytes);
    };
  }
  virtual int64_t load(uint32_t p, void* memory, uint64_t) {
    const size_t size = (block_begin_[p + 1] - block_begin_[p]) * sizeof(TestEdge);
    if (memory == nullptr) return static_cast<int64_t>(size);
    const int load_number = ++*load_count_;
    if (size > 0) std::memcpy(memory, edges_.data() + block_begin_[p], size);
    if (mishap_) mishap_(load_number);
    return static_cast<int64_t>(size);
  }

  const std::string column_ = path("column");
  const char* files_[1];
  graphlane_share_options options_;
  Shared<int> load_count_;
  std::function<void(int load_number)> mishap_;  // jobs may load at the same time
};

TEST_F(LoaderTest, OneJobLoadsForAll) {
  Shared<int> attached;
  std::vector<JobProcess> jobs;
  for (int j = 0; j < 4; ++j) {
    jobs.emplace_back([&] {
      ShareJob job(options_);
      ++*attached;
      attached.await(4);
      EXPECT_EQ(sweep(job), hash_);
      EXPECT_EQ(sweep(job), hash_);
    });
  }
  for (JobProcess& job : jobs) EXPECT_EQ(job.wait(), 0);
  EXPECT_LE(load_count_->load(), 2 * 2 * static_cast<int>(kPartitions));
}

TEST_F(LoaderTest, AnotherJobLoadsIfOneDiesOrStops) {
  for (const int fate : {SIGKILL, SIGSTOP}) {
    *load_count_ = 0;
    mishap_ = [fate](int load_number) {
      if (load_number == 5) ::raise(fate);
    };
    Shared<int> attached;
    Shared<int> through;
    std::vector<JobProcess> jobs;
    for (int j = 0; j < 3; ++j) {
      jobs.emplace_back([&] {
        ShareJob job(options_);
        ++*attached;
        attached.await(3);
        EXPECT_EQ(sweep(job), hash_);
        ++*through;
      });
    }
    through.await(2);
    int lost = 0;
    for (JobProcess& job : jobs) {
      job.send(SIGCONT);
      const int status = job.wait();
      if (status == -SIGKILL) {
        ++lost;
      } else {
        EXPECT_EQ(status, 0);
      }
    }
    EXPECT_EQ(lost, fate == SIGKILL ? 1 : 0);
  }
}

TEST_F(LoaderTest, AJobThatStopsBetweenLoadsHoldsNoJobUp) {
  Shared<int> attached;
  JobProcess stopped([&] {
    ShareJob job(options_);
    uint32_t partition;
    EXPECT_EQ(graphlane_share_sharing(job.get(), &partition), 1);
    ++*attached;
    ::raise(SIGSTOP);
  });
  attached.await(1);
  stopped.await_stop();
  ShareJob other(options_);
  const uint64_t last = uint64_t{1} << (kPartitions - 1);
  uint32_t seen = 0;
  other.sweep_partitions(&last,
                         [&](const graphlane_share_chunk& chunk) { seen = chunk.partition; });
  EXPECT_EQ(seen, kPartitions - 1);
}

TEST_F(LoaderTest, JobsThatDieAnywhereAreReplaced) {
  std::mt19937 random(static_cast<uint32_t>(::getpid()));
  ShareJob resident(options_);
  std::vector<JobProcess> jobs;
  std::vector<bool> dies;
  for (int i = 0; i < 16; ++i) {
    const auto fate = static_cast<uint32_t>(random());
    dies.push_back(fate % 2 == 0);
    jobs.emplace_back([&] {
      std::mt19937 chance(fate);
      const auto perhaps_die = [&] {
        if (fate % 2 == 0 && chance() % 30 == 0) ::raise(SIGKILL);
        if (chance() % 400 == 0) ::raise(SIGSTOP);
      };
      mishap_ = [&](int) { perhaps_die(); };
      ShareJob job(options_);
      do EXPECT_EQ(sweep(job, perhaps_die), hash_);
      while (fate % 2 == 0);
    });
    ::usleep(random() % 10'000);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sweep(resident), hash_);
  for (size_t i = 0; i < jobs.size(); ++i) {
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(jobs[i].pid()), &ended, WEXITED | WNOWAIT | WNOHANG) ==
               0 &&
           ended.si_pid == 0) {
      jobs[i].send(SIGCONT);
      ::usleep(1000);
    }
    EXPECT_EQ(jobs[i].wait(), dies[i] ? -SIGKILL : 0);
  }
  EXPECT_EQ(sweep(resident), hash_);
}

TEST_F(LoaderTest, AJobGetsItsLoadersError) {
  options_.load = [](void*, uint32_t partition, void*, uint64_t) -> int64_t {
    return partition == 3 ? -ENXIO : 8;
  };
  ShareJob job(options_);
  uint32_t partition;
  int result = 1;
  while (result == 1) result = graphlane_share_sharing(job.get(), &partition);
  EXPECT_EQ(result, -ENXIO);
  EXPECT_STREQ(graphlane_share_error(), "column: partition 3: the loader failed");
}

TEST_F(LoaderTest, PartitionsWithoutRecordsAreOneChunk) {
  ShareJob job(options_);
  EXPECT_EQ(job.statistics().chunk_bytes, UINT64_MAX);
  int chunk_count = 0;
  job.sweep([&](const graphlane_share_chunk& chunk) {
    EXPECT_EQ(chunk.chunk, 0u);
    EXPECT_EQ(chunk.edge_count, 0u);
    ++chunk_count;
  });
  EXPECT_EQ(chunk_count, static_cast<int>(kPartitions));
}

// --- active vertices ----------------------------------------------------------

class ActiveTest : public ShareTest {
 protected:
  using Vertices = std::vector<uint64_t>;

  static Vertices range(uint32_t begin, uint32_t end) {
    Vertices set((kVertices + 63) / 64);
    for (uint32_t v = begin; v < end; ++v) set[v / 64] |= uint64_t{1} << v % 64;
    return set;
  }
  static bool has(const Vertices& set, uint32_t v) { return (set[v / 64] >> v % 64 & 1) != 0; }

  // The sum over edges from active vertices, and the number of edges delivered for it.
  static std::pair<uint64_t, uint64_t> active_sweep(ShareJob& job, const Vertices& active) {
    uint64_t sum = 0;
    uint64_t count = 0;
    job.sweep(active.data(), kVertices, [&](const graphlane_share_chunk& chunk) {
      const auto* edges = static_cast<const TestEdge*>(chunk.data);
      uint64_t here = 0;
      for (uint64_t i = 0; i < chunk.edge_count; ++i) {
        if (!has(active, edges[i].source)) continue;
        sum += edge_hash(edges[i]);
        ++here;
      }
      count += chunk.edge_count;
      if (chunk.active_edge_count != chunk.edge_count) {
        EXPECT_EQ(chunk.active_edge_count, here);
      }
    });
    return {sum, count};
  }
  uint64_t expected(const Vertices& active) const {
    uint64_t sum = 0;
    for (const TestEdge& edge : edges_) {
      if (has(active, edge.source)) sum += edge_hash(edge);
    }
    return sum;
  }
  // Sweeps until the graph is labelled, beside the jobs, and the job has the labels. From then on
  // partitions are skipped.
  void learn(ShareJob& job) const {
    const Vertices one = range(0, 1);
    while (active_sweep(job, one).second == edges_.size()) {
    }
    EXPECT_EQ(job.statistics().labelled_partitions, kPartitions);
  }
  std::string label_path() const { return path(label_file_name("column")); }
};

TEST_F(ActiveTest, OnlyPartitionsWithActiveEdgesCome) {
  ShareJob job = this->job();
  const Vertices all = range(0, kVertices);
  const Vertices few = range(0, 100);  // of the first of four source partitions
  EXPECT_EQ(active_sweep(job, few).first, expected(few));
  EXPECT_EQ(active_sweep(job, all).first, expected(all));
  learn(job);
  active_sweep(job, few);  // gets the labels with its first partition
  const auto before = job.statistics();
  const auto [sum, count] = active_sweep(job, few);
  EXPECT_EQ(sum, expected(few));
  EXPECT_LE(count, edges_.size() / 3);
  EXPECT_EQ(job.statistics().shared_partitions - before.shared_partitions, kGrid);
  const Vertices none = range(0, 0);
  EXPECT_EQ(active_sweep(job, none).second, 0u);
}

TEST_F(ActiveTest, SkipsChunksWithoutActiveEdges) {
  ShareJob job = this->job();
  const uint64_t chunk_edges = job.statistics().chunk_bytes / sizeof(TestEdge);
  ASSERT_LT(chunk_edges, 200u);
  learn(job);
  const Vertices one = range(77, 78);
  active_sweep(job, one);  // gets the labels with its first partition
  uint64_t expected_count = 0;
  for (uint32_t p = 0; p < kPartitions; ++p) {
    for (size_t begin = block_begin_[p]; begin < block_begin_[p + 1]; begin += chunk_edges) {
      const size_t end = std::min(begin + chunk_edges, block_begin_[p + 1]);
      const bool active = std::any_of(edges_.begin() + static_cast<ptrdiff_t>(begin),
                                      edges_.begin() + static_cast<ptrdiff_t>(end),
                                      [](const TestEdge& edge) { return edge.source == 77; });
      if (active) expected_count += end - begin;
    }
  }
  const auto [sum, count] = active_sweep(job, one);
  EXPECT_EQ(sum, expected(one));
  EXPECT_EQ(count, expected_count);
  EXPECT_LT(count, edges_.size() / 10);
}

TEST_F(ActiveTest, LabelsAreMadeOnceAndKeptBesideTheGraph) {
  const Vertices few = range(300, 400);
  {
    ShareJob job = this->job();
    learn(job);
  }
  await_end_of_coordinators();
  ASSERT_TRUE(std::filesystem::exists(label_path()));
  ShareJob job = this->job();
  active_sweep(job, few);  // gets them with its first partition
  EXPECT_EQ(active_sweep(job, few).first, expected(few));
  EXPECT_EQ(job.statistics().labelled_partitions, 0u);
}

// Once the labels are in shared memory, the coordinator keeps no copy of its own. It once kept the
// input of the labels too.
TEST_F(ActiveTest, KeepsOneCopyOfTheLabelsInMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "not applicable: a sanitizer keeps what is freed";
#endif
  make_grid(2'000'000, 1);
  ShareJob job = this->job();
  ASSERT_EQ(sweep(job), hash_);
  const auto anonymous_bytes = [this] {
    std::ifstream status("/proc/" + std::to_string(coordinator()) + "/status");
    std::string word;
    uint64_t kibibytes = 0;
    while (status >> word && word != "RssAnon:") {
    }
    status >> kibibytes;
    return kibibytes << 10;
  };
  const uint64_t before = anonymous_bytes();
  learn(job);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(label_path()); }));
  EXPECT_GT(std::filesystem::file_size(label_path()), graph_bytes() / 2);
  EXPECT_LT(anonymous_bytes(), before + graph_bytes() / 4);
}

// A partition without memory for its labels was once retried without end.
TEST_F(ActiveTest, RunsWithoutLabelsIfTheyDoNotFit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "not applicable: a sanitizer needs address space without end";
#endif
  make_grid(2'000'000, 1);
  ShareJob job = this->job();
  ASSERT_EQ(sweep(job), hash_);  // all are in memory
  const pid_t coordinator = this->coordinator();
  uint64_t pages = 0;
  std::ifstream("/proc/" + std::to_string(coordinator) + "/statm") >> pages;
  // Allows the growth of its heap, but no mapping of a partition, which has 1 MB.
  const rlim_t bytes_max =
      pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + graph_bytes() / 32;
  const rlimit limit{.rlim_cur = bytes_max, .rlim_max = bytes_max};
  ASSERT_EQ(::prlimit(coordinator, RLIMIT_AS, &limit, nullptr), 0);
  const Vertices few = range(300, 400);
  EXPECT_EQ(active_sweep(job, few).first, expected(few));
  clockid_t clock;
  ASSERT_EQ(::clock_getcpuclockid(coordinator, &clock), 0);
  const auto computed_ms = [clock] {
    timespec time{};
    ::clock_gettime(clock, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1'000'000;
  };
  const int64_t before_ms = computed_ms();
  ::usleep(500'000);
  EXPECT_LT(computed_ms() - before_ms, 50);
  EXPECT_EQ(active_sweep(job, few).first, expected(few));
  EXPECT_EQ(job.statistics().labelled_partitions, 0u);
  EXPECT_EQ(this->coordinator(), coordinator);
}

// The labels tell for each chunk which vertices have edges there, and any user might read them.
TEST_F(ActiveTest, LabelsAreReadableOnlyAsTheGraphIs) {
  for (const mode_t mode : {0600u, 0640u, 0644u}) {
    std::filesystem::remove(label_path());
    ASSERT_EQ(::chmod(path("column").c_str(), mode), 0);
    {
      ShareJob job = this->job();
      learn(job);
    }
    await_end_of_coordinators();
    struct stat st;
    ASSERT_EQ(::stat(label_path().c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, mode == 0644u ? 0644u : 0600u);
  }
}

// A sweep skips empty partitions. While labels needed those in memory, such a graph was never
// labelled.
TEST_F(ActiveTest, EmptyPartitionsNeedNoLabels) {
  make_grid(3, 1);
  JobProcess process([this] {
    ShareJob job = this->job();
    while (!std::filesystem::exists(label_path())) active_sweep(job, range(0, kVertices));
    const Vertices few = range(0, 500);
    EXPECT_EQ(active_sweep(job, few).first, expected(few));
  });
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(ActiveTest, ReplacesDamagedLabelsAndThoseOfAnotherGraph) {
  const Vertices few = range(300, 400);
  for (const bool damage : {false, true}) {
    {
      ShareJob job = this->job();
      active_sweep(job, few);
      while (!std::filesystem::exists(label_path())) active_sweep(job, few);
    }
    await_end_of_coordinators();
    ASSERT_TRUE(std::filesystem::exists(label_path()));
    if (damage) {
      std::fstream file(label_path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(300).put('x').put('y');
    } else {
      make_grid(21'000, 9);
    }
    {
      ShareJob job = this->job();
      learn(job);
      EXPECT_EQ(active_sweep(job, few).first, expected(few));
    }
    await_end_of_coordinators();
  }
}

TEST_F(ActiveTest, JobsThatStartTogetherLabelOnce) {
  Shared<int> attached;
  std::vector<JobProcess> jobs;
  for (int j = 0; j < 4; ++j) {
    jobs.emplace_back([&, j] {
      ShareJob job = this->job();
      ++*attached;
      attached.await(4);
      const Vertices mine = range(250u * j, 250u * j + 100);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(active_sweep(job, mine).first, expected(mine));
      learn(job);
    });
  }
  for (JobProcess& job : jobs) EXPECT_EQ(job.wait(), 0);
}

TEST_F(ActiveTest, KeepsLabelsInMemoryIfTheyCannotBeWritten) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  JobProcess reader([&] {
    ASSERT_EQ(::setresuid(65534, 65534, 65534), 0);
    ShareJob job = this->job();
    const Vertices few = range(300, 400);
    learn(job);
    EXPECT_EQ(active_sweep(job, few).first, expected(few));
    EXPECT_LT(active_sweep(job, few).second, edges_.size() / 3);
  });
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(label_path()));
}

// The labels belong to a graph of the same size with other edges. Any user may plant them in a
// world-writable directory. They were once believed, and no edge came.
TEST_F(ActiveTest, IgnoresLabelsOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  {
    ShareJob job = this->job();
    learn(job);
  }
  await_end_of_coordinators();
  std::ifstream file(label_path(), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  LabelHeader header;
  ASSERT_GT(bytes.size(), sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  const size_t entries = bytes.size() - header.entry_count * sizeof(ChunkEntry);
  std::memset(bytes.data() + entries, 0xff, bytes.size() - entries);
  const auto crc = [](const void* data, size_t length) {
    return crc32c(static_cast<const uint8_t*>(data), length);
  };
  header.payload_crc = crc(bytes.data() + sizeof header, bytes.size() - sizeof header);
  header.header_crc = crc(&header, offsetof(LabelHeader, header_crc));
  std::memcpy(bytes.data(), &header, sizeof header);
  std::filesystem::remove(label_path());
  std::ofstream(label_path(), std::ios::binary) << bytes;

  ASSERT_EQ(::chown(label_path().c_str(), 65534, 65534), 0);

  {
    const Vertices few = range(300, 400);
    ShareJob job = this->job();
    active_sweep(job, few);  // it would get them with its first partition
    ASSERT_EQ(active_sweep(job, few).first, expected(few));
    learn(job);
    EXPECT_EQ(active_sweep(job, few).first, expected(few));
  }
  await_end_of_coordinators();
  struct stat st;
  ASSERT_EQ(::stat(label_path().c_str(), &st), 0);
  EXPECT_EQ(st.st_uid, 0u) << "they were made anew";
}

// Another job would believe labels of this user beside a stranger's graph.
TEST_F(ActiveTest, LeavesNoLabelsBesideAnotherUsersGraph) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown(path("column").c_str(), 65534, 65534), 0);
  {
    ShareJob job = this->job();
    learn(job);
    const Vertices few = range(300, 400);
    EXPECT_EQ(active_sweep(job, few).first, expected(few));
  }
  await_end_of_coordinators();
  EXPECT_FALSE(std::filesystem::exists(label_path()));
}

TEST_F(ActiveTest, AJobMayNameItsPartitions) {
  ShareJob job = this->job();
  const uint64_t set = 0b1001;
  std::set<uint32_t> seen;
  job.sweep_partitions(&set,
                       [&](const graphlane_share_chunk& chunk) { seen.insert(chunk.partition); });
  EXPECT_EQ(seen, (std::set<uint32_t>{0, 3}));
  EXPECT_EQ(sweep(job), hash_) << "the next one is over all again";
}

// --- snapshots ----------------------------------------------------------------

class SnapshotTest : public ActiveTest {
 protected:
  ShareJob job() const {
    graphlane_share_options options = this->options();
    options.vertex_bytes = 8;
    return ShareJob::grid(dir_.c_str(), options);
  }
  // The graph's hash with chunk 0 of `partition` replaced. A partition is one chunk here.
  uint64_t with(uint32_t partition, const std::vector<TestEdge>& edges) const {
    return hash_ -
           hash_of(edges_.data() + block_begin_[partition],
                   (block_begin_[partition + 1] - block_begin_[partition]) * sizeof(TestEdge)) +
           hash_of(edges.data(), edges.size() * sizeof(TestEdge));
  }
  const std::vector<TestEdge> one_{{5, 6}};
  const std::vector<TestEdge> two_{{7, 8}, {990, 991}};
};

TEST_F(SnapshotTest, AMutationIsPrivateToItsJob) {
  ShareJob changed = job();
  ShareJob other = job();
  const std::string bytes = bytes_of(two_);
  changed.mutate(3, 0, bytes.data(), bytes.size());
  EXPECT_EQ(sweep(other), hash_);
  EXPECT_EQ(sweep(changed), with(3, two_));
  changed.mutate(3, 0, nullptr, 0);
  EXPECT_EQ(sweep(changed), with(3, {}));
  EXPECT_EQ(sweep(other), hash_);
}

// The chunk's bytes were once freed or changed under their reader.
TEST_F(SnapshotTest, AMutationOfTheCurrentChunkHoldsFromTheNextStartOn) {
  ShareJob changed = job();
  std::string bytes = bytes_of(one_);
  changed.mutate(3, 0, bytes.data(), bytes.size());
  const std::vector<TestEdge> many(10'000, TestEdge{7, 8});
  bytes = bytes_of(many);
  const uint64_t set = 0b1000;
  changed.sweep_partitions(&set, [&](const graphlane_share_chunk& chunk) {
    const uint64_t before = hash_of(chunk.data, chunk.size_bytes);
    changed.mutate(3, 0, bytes.data(), bytes.size());
    EXPECT_EQ(hash_of(chunk.data, chunk.size_bytes), before);
  });
  EXPECT_EQ(sweep(changed), with(3, many));
}

// The update had no reader any more, and once stayed for ever.
TEST_F(SnapshotTest, WritingTheFileDropsUpdates) {
  {
    ShareJob updating = job();
    const std::string bytes = bytes_of(one_);
    updating.update(3, 0, bytes.data(), bytes.size());
    ::usleep(20'000);  // the clock of files' times
    ASSERT_EQ(::utimensat(AT_FDCWD, path("column").c_str(), nullptr, 0), 0);
  }
  await_end_of_coordinators();
}

TEST_F(SnapshotTest, LaterJobsSeeAnUpdate) {
  // Figure 7.
  ShareJob job1 = job();
  const std::string bytes = bytes_of(one_);
  job1.update(3, 0, bytes.data(), bytes.size());
  ShareJob job2 = job();
  EXPECT_EQ(sweep(job1), hash_);
  EXPECT_EQ(sweep(job2), with(3, one_));
  const std::string later = bytes_of(two_);
  job2.update(3, 0, later.data(), later.size());
  job2.mutate(4, 0, later.data(), later.size());
  ShareJob job3 = job();
  EXPECT_EQ(sweep(job1), hash_);
  EXPECT_EQ(sweep(job2), with(3, one_) + with(4, two_) - hash_);
  EXPECT_EQ(sweep(job3), with(3, two_));
}

TEST_F(SnapshotTest, DropsOldCopiesAfterTheirLastReaderAndKeepsUpdates) {
  const std::string large(800'000, 'a');
  auto job1 = std::make_unique<ShareJob>(job());
  job1->update(3, 0, large.data(), large.size());
  auto job2 = std::make_unique<ShareJob>(job());
  job1->update(3, 0, large.data(), large.size());
  EXPECT_GT(job1->statistics().changed_bytes, 2 * large.size());
  job2.reset();
  ASSERT_TRUE(eventually([&] { return job1->statistics().jobs == 1; }));
  EXPECT_LT(job1->statistics().changed_bytes, large.size() + 1000);
  job1.reset();
  ::usleep(500'000);  // more than it idles otherwise
  ShareJob job3 = job();
  EXPECT_EQ(sweep(job3), with(3, {}) + hash_of(large.data(), large.size()));
}

TEST_F(SnapshotTest, ChangedEdgesCountAsActive) {
  ShareJob before = job();
  const Vertices few = range(980, 1000);
  learn(before);
  active_sweep(before, few);  // has the labels: partition 0 has no such source
  const std::string bytes = bytes_of(two_);
  before.update(0, 1, bytes.data(), bytes.size());  // a chunk more
  ShareJob after = job();
  active_sweep(after, few);
  EXPECT_EQ(active_sweep(after, few).first, expected(few) + edge_hash(two_[1]));
  EXPECT_EQ(active_sweep(before, few).first, expected(few));
  before.mutate(0, 1, bytes.data(), bytes.size());
  EXPECT_EQ(active_sweep(before, few).first, expected(few) + edge_hash(two_[1]));
}

// The highest number once made 2^32 chunks of the partition, of which none was processed.
TEST_F(SnapshotTest, AddsChunksOneBehindTheLast) {
  ShareJob job = this->job();
  const std::string bytes = bytes_of(one_);
  const auto mutate = [&](uint32_t chunk) {
    return graphlane_share_mutate(job.get(), 3, chunk, bytes.data(), bytes.size());
  };
  const auto update = [&](uint32_t chunk) {
    return graphlane_share_update(job.get(), 3, chunk, bytes.data(), bytes.size());
  };
  for (const uint32_t chunk : {2u, UINT32_MAX}) {
    EXPECT_EQ(mutate(chunk), -EINVAL);
    EXPECT_EQ(graphlane_share_error(),
              path("column") + ": partition 3: chunk " + std::to_string(chunk) + " of 1");
    EXPECT_EQ(update(chunk), -EINVAL);
    EXPECT_EQ(graphlane_share_error(),
              "column: partition 3: chunk " + std::to_string(chunk) + " of 1");
  }
  EXPECT_EQ(sweep(job), hash_);
  EXPECT_EQ(update(1), 0);
  EXPECT_EQ(update(3), -EINVAL);
  EXPECT_EQ(update(2), 0);
  EXPECT_EQ(mutate(2), -EINVAL) << "it does not see the updates";
  EXPECT_EQ(mutate(1), 0);
  EXPECT_EQ(mutate(2), 0);
  const uint64_t added = edge_hash(one_[0]);
  EXPECT_EQ(sweep(job), hash_ + 2 * added);
  ShareJob later = this->job();
  EXPECT_EQ(sweep(later), hash_ + 2 * added);
  EXPECT_EQ(graphlane_share_mutate(later.get(), 3, 3, bytes.data(), bytes.size()), 0);
  EXPECT_EQ(sweep(later), hash_ + 3 * added);
}

TEST_F(LoaderTest, ALoadDecidesThePartitionsChunks) {
  options_.record_bytes = sizeof(TestEdge);
  ShareJob job(options_);
  const TestEdge edge{1, 2};
  const auto change = [&](uint32_t chunk) {
    return std::pair(graphlane_share_mutate(job.get(), 0, chunk, &edge, sizeof edge),
                     graphlane_share_update(job.get(), 0, chunk, &edge, sizeof edge));
  };
  EXPECT_EQ(change(1), std::pair(-EINVAL, -EINVAL));
  EXPECT_EQ(sweep(job), hash_);
  EXPECT_EQ(change(2), std::pair(-EINVAL, -EINVAL));
  EXPECT_EQ(change(1), std::pair(0, 0));
  EXPECT_EQ(sweep(job), hash_ + edge_hash(edge));
}

// --- a coordinator that dies ----------------------------------------------------

// Formula 1 uses the U_v of the first job, and any job may be the first at the new coordinator. The
// second job was once told that the graph had been updated.
TEST_F(SnapshotTest, JobsGoOnIfTheNewCoordinatorHasOtherChunks) {
  ShareJob first = ActiveTest::job();
  ShareJob second = job();
  ShareJob changed = job();
  const Vertices few = range(300, 400);
  learn(first);
  active_sweep(first, few);  // gets the labels with its first partition
  const uint64_t chunk_bytes = first.statistics().chunk_bytes;
  changed.mutate(3, 0, nullptr, 0);
  const pid_t coordinator = this->coordinator();
  ::kill(coordinator, SIGKILL);
  EXPECT_EQ(sweep(second), hash_);
  EXPECT_EQ(active_sweep(first, few).first, expected(few));
  EXPECT_EQ(sweep(first), hash_);
  EXPECT_GT(first.statistics().chunk_bytes, chunk_bytes);
  EXPECT_NE(this->coordinator(), coordinator);
  for (int i = 0; i < 2; ++i) {
    uint32_t partition;
    EXPECT_EQ(graphlane_share_sharing(changed.get(), &partition), -ESTALE);
    EXPECT_EQ(graphlane_share_error(),
              path("column") + ": its new coordinator has other chunks than the job has changed");
  }
}

// --- turns --------------------------------------------------------------------

TEST_F(ShareTest, JobsThatCrowdTheCoresTakeTurns) {
  Shared<int> attached;
  Shared<uint64_t> turns;
  std::vector<JobProcess> jobs;
  for (int j = 0; j < 3; ++j) {
    jobs.emplace_back([&] {
      graphlane_share_options options = this->options();
      options.thread_count = 4096;
      ShareJob job = ShareJob::grid(dir_.c_str(), options);
      ++*attached;
      attached.await(3);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(sweep(job, [] { ::usleep(500); }), hash_);
      *turns = std::max(turns->load(), job.statistics().turns);
      EXPECT_GT(job.statistics().edge_process_ps, 0u);
    });
  }
  for (JobProcess& job : jobs) EXPECT_EQ(job.wait(), 0);
  EXPECT_GT(*turns, kPartitions);
}

// --- bad input ----------------------------------------------------------------

TEST_F(ShareTest, ReportsBadInputInOneLine) {
  graphlane_share* job = nullptr;
  const auto grid = [&](const std::string& dir) {
    const int result = graphlane_share_init_grid(dir.c_str(), nullptr, &job, nullptr);
    return result < 0 ? graphlane_share_error() : "good";
  };
  EXPECT_EQ(grid("/nowhere"), std::string("/nowhere/meta: cannot open: No such file or directory"));
  graphlane_share_options options{};
  EXPECT_EQ(graphlane_share_init(&options, &job), -EINVAL);
  EXPECT_STREQ(graphlane_share_error(),
               "partitions are ranges of files or made by a loader, one of both");
  const graphlane_share_range range{
      .partition = 0, .file = 0, .offset = 0, .length_bytes = uint64_t{1} << 40};
  options.ranges = &range;
  options.range_count = 1;
  options.partition_count = 1;
  EXPECT_EQ(graphlane_share_init(&options, &job), -EINVAL);
  EXPECT_STREQ(graphlane_share_error(), "0 files: 1 to 64 are possible");
  const std::string name = path("column");
  const char* files[] = {name.c_str()};
  options.files = files;
  options.file_count = 1;
  EXPECT_EQ(graphlane_share_init(&options, &job), -EINVAL);
  EXPECT_EQ(graphlane_share_error(),
            name + ": partition 0: 1099511627776 bytes at 0 of a file that has 160000");
  files[0] = dir_.c_str();
  EXPECT_EQ(graphlane_share_init(&options, &job), -EINVAL);
  EXPECT_EQ(graphlane_share_error(), dir_ + ": not a regular file");

  std::filesystem::resize_file(path("column"), 1000);
  const std::string first = std::to_string((block_begin_[1] - block_begin_[0]) * sizeof(TestEdge));
  EXPECT_EQ(grid(dir_),
            path("column") + ": partition 0: " + first + " bytes at 0 of a file that has 1000");
  std::filesystem::resize_file(path("column_offset"), 64);
  EXPECT_EQ(grid(dir_), path("column_offset") + ": byte 64: 64 bytes, expected 136");
}

TEST_F(ShareTest, AMissingCoordinatorIsNamed) {
  JobProcess process([&] {
    ::setenv("GRAPHLANE_SHARE_COORDINATOR", "/nowhere/coordinator", 1);
    graphlane_share* job = nullptr;
    EXPECT_EQ(graphlane_share_init_grid(dir_.c_str(), nullptr, &job, nullptr), -ENOENT);
    EXPECT_STREQ(graphlane_share_error(),
                 "/nowhere/coordinator: cannot start: No such file or directory");
  });
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(ShareTest, StartWithoutAPartitionIsAnError) {
  ShareJob job = this->job();
  graphlane_share_chunk chunk;
  EXPECT_EQ(graphlane_share_start(job.get(), &chunk), -EINVAL);
  EXPECT_EQ(graphlane_share_mutate(job.get(), kPartitions, 0, nullptr, 0), -EINVAL);
  EXPECT_EQ(graphlane_share_mutate(job.get(), 0, 0, "1234", 4), -EINVAL);
  EXPECT_STREQ(graphlane_share_error(), "4 bytes are not whole edges of 8");
}

}  // namespace
}  // namespace graphlane::share
