// One graph without a process of its own: the order of loading for its jobs, with hardly enough
// memory.
#include "adapters/share/coordinator/shared_graph.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "iomgr/base/files/file_io.h"
#include "iomgr/base/futex.h"

namespace graphlane::share {
namespace {

constexpr uint64_t kBytes = 10'000;  // of each partition
constexpr uint32_t kPartitions = 12;
constexpr int kWaitMs = 5000;

class SharedGraphTest : public testing::Test {
 protected:
  SharedGraphTest()
      : path_((std::filesystem::temp_directory_path() / "shared_graph_XXXXXX").string()) {
    const Fd file(::mkstemp(path_.data()));
    std::string bytes(kPartitions * kBytes, '\0');
    std::mt19937 random(1);
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_TRUE(pwrite_full(file.get(), bytes.data(), bytes.size(), 0));
  }
  ~SharedGraphTest() override { std::filesystem::remove(path_); }

  // Batches of two partitions. The budget has four buffers, and nothing for packed ones.
  std::shared_ptr<SharedGraph> make_graph() {
    GraphFiles files{.name = "graph",
                     .files = {},
                     .direct = {},
                     .identities = {},
                     .layout = {},
                     .units = Units(std::vector<uint64_t>(kPartitions, kBytes), kUncut)};
    files.files.emplace_back(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    files.direct.emplace_back();
    files.identities.push_back(*identify(files.files[0].get()));
    files.layout.partition_count = kPartitions;
    for (uint32_t p = 0; p < kPartitions; ++p) {
      files.layout.ranges.push_back({p, 0, p * kBytes, kBytes});
    }
    const SharedGraph::Options options{.charged_to = {},
                                       .budget_bytes = 4 * kBytes,
                                       .part_bytes = 4 * kBytes,
                                       .is_budget_given = true,
                                       .buffer_count_max = 100,
                                       .core_count = 2,
                                       .chunk_bytes = UINT64_MAX,
                                       .batching = {.unit_bytes = files.units.bytes(),
                                                    .batch_bytes = 2 * kBytes,
                                                    .ahead_bytes = kBytes,
                                                    .first_of_same = {}}};
    return std::make_shared<SharedGraph>(std::move(files), nullptr, worker_, options);
  }

  // A job of `graph`: its end of the socket, the other one stays here.
  int attach(SharedGraph& graph, JobId id) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    sockets_.emplace_back(ends[0]);
    sockets_.emplace_back(ends[1]);
    graph.attach({.job = id, .thread_count = 1, .thread_count_min = 1}, ends[0], ::geteuid());
    EXPECT_EQ(receive(ends[1]).first, Kind::kWelcome);
    return ends[1];
  }
  static void begin(SharedGraph& graph, JobId id, const std::vector<uint32_t>& partitions) {
    PartitionSet set(kPartitions);
    for (const uint32_t p : partitions) set.add(p);
    EXPECT_TRUE(graph.sweep(id, std::move(set), SweepMessage()));
    EXPECT_TRUE(graph.next(id, NextMessage()));
  }
  // The next message to the job, with the partitions that it grants; kLoad if none comes in time.
  std::pair<Kind, std::vector<uint32_t>> await(SharedGraph& graph, int socket) {
    const uint64_t end_ns = monotonic_ns() + uint64_t{kWaitMs} * 1'000'000;
    while (monotonic_ns() < end_ns) {
      graph.pump(monotonic_ns());
      pollfd events[] = {{.fd = socket, .events = POLLIN, .revents = 0},
                         {.fd = worker_.event(), .events = POLLIN, .revents = 0}};
      ::poll(events, 2, 10);
      if (events[0].revents != 0) return receive(socket);
      worker_.finish();
    }
    return {Kind::kLoad, {}};
  }
  static std::pair<Kind, std::vector<uint32_t>> receive(int socket) {
    const auto message = receive_message(socket);
    PlainMessage plain{Kind::kLoad};
    if (!message || !message->read(plain)) return {plain.kind, {}};
    std::vector<uint32_t> partitions;
    UnitsMessage head;
    if (plain.kind == Kind::kUnits && message->read(head)) {
      std::vector<GivenUnit> given(head.count);
      std::memcpy(given.data(), message->after(sizeof head).data(), head.count * sizeof given[0]);
      for (const GivenUnit& it : given) partitions.push_back(it.unit);
    }
    return {plain.kind, partitions};
  }

  std::string path_;
  Worker worker_;
  std::vector<Fd> sockets_;
};

using Given = std::pair<Kind, std::vector<uint32_t>>;

// Loaded units of a batch were once evicted for the rest of it, as they come last in the graph, and
// the rest for these again. Units loaded ahead, earlier in the graph, stayed.
TEST_F(SharedGraphTest, LoadedUnitsOfTheOpenBatchAreNotEvictedForTheRest) {
  const auto graph = make_graph();
  const int a = attach(*graph, 1);
  const int b = attach(*graph, 2);
  const int c = attach(*graph, 3);
  begin(*graph, 1, {0, 10});
  EXPECT_EQ(await(*graph, a), Given(Kind::kUnits, {0, 10}));
  EXPECT_TRUE(graph->next(1, NextMessage()));
  EXPECT_EQ(await(*graph, a), Given(Kind::kSweepEnd, {}));
  begin(*graph, 3, {5, 6});
  EXPECT_EQ(await(*graph, c), Given(Kind::kUnits, {5, 6}));
  // All four are in memory, and c reads 5 and 6. Units that two jobs want are opened first: 10 and
  // 11. Unit 0 is loaded ahead.
  begin(*graph, 1, {0, 10, 11});
  begin(*graph, 2, {10, 11});
  const uint64_t loaded_before = graph->statistics().loaded_partitions;
  EXPECT_EQ(await(*graph, a), Given(Kind::kUnits, {10, 11}));
  EXPECT_EQ(await(*graph, b), Given(Kind::kUnits, {10, 11}));
  EXPECT_EQ(graph->statistics().loaded_partitions - loaded_before, 1u);
  EXPECT_TRUE(graph->next(3, NextMessage()));
  EXPECT_EQ(await(*graph, c), Given(Kind::kSweepEnd, {}));
  EXPECT_TRUE(graph->next(1, NextMessage()));
  EXPECT_EQ(await(*graph, a), Given(Kind::kUnits, {0}));
}

}  // namespace
}  // namespace graphlane::share
