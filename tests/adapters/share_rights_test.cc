// Rights of strangers and other users, and jobs that lie.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <future>

#include "adapters/share/client/rendezvous.h"
#include "adapters/share/coordinator/label_file.h"
#include "adapters/share/memory/sealed_memory.h"
#include "adapters/share/wire/layout.h"
#include "adapters/share/wire/message_socket.h"
#include "adapters/share/wire/protocol.h"
#include "tests/adapters/share_fixture.h"

namespace graphlane::share {
namespace {

constexpr uid_t kStranger = 65534;
constexpr uid_t kOther = 65533;

void become(uid_t user) {
  ASSERT_EQ(::setresgid(user, user, user), 0);
  ASSERT_EQ(::setresuid(user, user, user), 0);
}

class ShareRightsTest : public ShareTest {
 protected:
  // A connection to the graph's coordinator without the library.
  Fd connect() const {
    const Fd file(::open(path("column").c_str(), O_PATH | O_CLOEXEC));
    struct stat st;
    EXPECT_EQ(::fstat(file.get(), &st), 0);
    const Result<FileIdentity> identity = identify_without_rights(file.get());
    EXPECT_TRUE(identity);
    auto socket = connect_or_start({.first_file = *identity, .owner = st.st_uid});
    EXPECT_TRUE(socket);
    return socket ? std::move(*socket) : Fd();
  }
  // The socket where jobs look for a user's coordinator.
  std::string place_of(uid_t user) const {
    const Fd file(::open(path("column").c_str(), O_PATH | O_CLOEXEC));
    const Result<FileIdentity> identity = identify_without_rights(file.get());
    EXPECT_TRUE(identity);
    return fmt::format("graphlane-share-{}-{:x}-{:x}-{:x}", user, identity->device, identity->inode,
                       static_cast<uint64_t>(identity->born_ns));
  }
  // Waits until root's address is taken, or is free.
  bool await_place(bool taken) const {
    const std::string place = place_of(0);
    for (unsigned i = 0; i < 1000 * kHangSeconds; ++i, ::usleep(1000)) {
      std::ifstream file("/proc/net/unix");
      const std::string sockets{std::istreambuf_iterator<char>(file), {}};
      if ((sockets.find(place) != sockets.npos) == taken) return true;
    }
    return false;
  }
  // Root's coordinator, which serves all users.
  JobProcess serve() const {
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../bin" / kCoordinatorName;
    // An earlier test's file may have had this inode number, and its coordinator may still be
    // ending.
    EXPECT_TRUE(await_place(false));
    JobProcess server(
        [&] { ::execl(program.c_str(), program.c_str(), ("--serve=" + dir_).c_str(), nullptr); });
    EXPECT_TRUE(await_place(true));
    return server;
  }
  // The layout of this grid's column, as a job describes it.
  Layout layout() const {
    Layout layout{.by_loader = false,
                  .partition_count = kPartitions,
                  .record = {8, 0},
                  .vertex_count = kVertices,
                  .ranges = {}};
    for (uint32_t p = 0; p < kPartitions; ++p) {
      layout.ranges.push_back(
          {p, 0, block_begin_[p] * 8, (block_begin_[p + 1] - block_begin_[p]) * 8});
    }
    return layout;
  }
  // The coordinator's answer to an Attach that shows `file`.
  std::string attach(const Fd& socket, int file, const std::string& name = "column",
                     const std::string& directory = "/") const {
    return attach(socket, file, layout(), name, directory);
  }
  std::string attach(const Fd& socket, int file, const Layout& layout,
                     const std::string& name = "column", const std::string& directory = "/") const {
    const auto memory = make_sealed(layout.to_bytes());
    const Fd shown(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const int fds[] = {memory->get(), shown.get(), file};
    if (!send_head(socket.get(), AttachMessage{}, name, fds)) return "cut off";
    const auto answer = receive_message(socket.get());
    if (!answer) return "cut off";
    PlainMessage plain{};
    EXPECT_TRUE(answer->read(plain));
    if (plain.kind == Kind::kWelcome) return "welcome";
    return std::string(answer->after(sizeof(RefusalMessage)));
  }
};

TEST_F(ShareRightsTest, ADescriptorOfTheFileGivesAccess) {
  ShareJob resident = job();
  const Fd file(::open(path("column").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(attach(connect(), file.get()), "welcome");
}

TEST_F(ShareRightsTest, ADescriptorNotOpenForReadingGivesNoAccess) {
  ShareJob resident = job();
  const char* refusal = "column: file 0 is not one that the job has open for reading";
  const Fd path_only(::open(path("column").c_str(), O_PATH | O_CLOEXEC));
  EXPECT_EQ(attach(connect(), path_only.get()), refusal);
  const Fd write_only(::open(path("column").c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(attach(connect(), write_only.get()), refusal);
  // Another file of the same size is another graph: nothing of the first is in it.
  std::filesystem::copy_file(path("column"), path("copy"));
  const Fd copy(::open(path("copy").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(attach(connect(), copy.get()), "welcome");
  EXPECT_EQ(resident.statistics().jobs, 1u);
}

// The refusal once repeated it, and was too long to send: an assertion ended the coordinator.
TEST_F(ShareRightsTest, ATooLongFileNameIsRefused) {
  ShareJob resident = job();
  const pid_t coordinator = this->coordinator();
  const std::string longest(kMessageBytesMax - sizeof(AttachMessage), 'x');
  const Fd path_only(::open(path("column").c_str(), O_PATH | O_CLOEXEC));
  EXPECT_EQ(attach(connect(), path_only.get(), longest),
            "the name of the graph's first file has more than 255 bytes");
  EXPECT_EQ(sweep(resident), hash_);
  EXPECT_EQ(this->coordinator(), coordinator);
}

TEST_F(ShareRightsTest, AnUpdateNeedsTheRightToWriteTheFile) {
  const Fd readable(::open(path("column").c_str(), O_RDONLY | O_CLOEXEC));
  const Fd writable(::open(path("column").c_str(), O_RDWR | O_CLOEXEC));
  std::ofstream(path("other")) << "x";
  const Fd other(::open(path("other").c_str(), O_RDWR | O_CLOEXEC));
  ShareJob resident = job();
  const Fd socket = connect();
  ASSERT_EQ(attach(socket, readable.get()), "welcome");
  const auto bytes = make_sealed({});
  const auto unsealed = make_memory(8);
  const auto update = [&](int memory, int file) {
    const int fds[] = {memory, file};
    EXPECT_TRUE(send_head(socket.get(), UpdateMessage{}, {}, fds));
    const auto answer = receive_message(socket.get());
    PlainMessage plain{};
    if (!answer || !answer->read(plain)) return std::string("cut off");
    return plain.kind == Kind::kUpdated ? "done"
                                        : std::string(answer->after(sizeof(RefusalMessage)));
  };
  const char* refusal = "column: an update needs the right to write its files";
  EXPECT_EQ(update(bytes->get(), readable.get()), refusal);
  EXPECT_EQ(update(bytes->get(), other.get()), refusal);
  EXPECT_EQ(update(unsealed->get(), writable.get()), "column: an update must be sealed");
  EXPECT_EQ(update(bytes->get(), writable.get()), "done");
}

TEST_F(ShareRightsTest, MalformedMessagesAreCutOff) {
  ShareJob resident = job();
  std::mt19937 random(5);
  const Fd file(::open(path("column").c_str(), O_RDONLY | O_CLOEXEC));
  for (int i = 0; i < 400; ++i) {
    const Fd socket = connect();
    if (i % 2 == 0) {
      ASSERT_EQ(attach(socket, file.get()), "welcome");
    }
    // Messages of the known kinds with random content.
    for (int m = 0; m < 8; ++m) {
      std::string bytes(random() % 200, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random());
      const uint32_t kind = random() % 12;
      if (bytes.size() >= 4 && m % 2 == 0) std::memcpy(bytes.data(), &kind, 4);
      if (bytes.empty() || !send_message(socket.get(), bytes)) break;
    }
  }
  EXPECT_EQ(sweep(resident), hash_);
  EXPECT_EQ(resident.statistics().jobs, 1u);
}

TEST_F(ShareRightsTest, WithoutAFreeSlotAJobWaitsForOne) {
  ShareJob resident = job();
  const Fd file(::open(path("column").c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<Fd> others(1023);
  for (Fd& other : others) {
    other = connect();
    ASSERT_EQ(attach(other, file.get()), "welcome");
  }
  auto last = std::async(std::launch::async, [this] {
    ShareJob job = this->job();
    return sweep(job);
  });
  EXPECT_EQ(sweep(resident), hash_) << "all go on";
  EXPECT_EQ(last.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  others.clear();
  EXPECT_EQ(last.get(), hash_);
}

// They once took all places, and a job failed after ten seconds without an answer.
TEST_F(ShareRightsTest, AConnectionThatDoesNotAttachIsCutOff) {
  ShareJob resident = job();
  std::vector<Fd> mute(1023);
  for (Fd& it : mute) it = connect();
  ShareJob late = job();
  EXPECT_EQ(sweep(late), hash_);
  for (const Fd& it : mute) EXPECT_FALSE(receive_message(it.get()));
  EXPECT_EQ(sweep(resident), hash_);
}

TEST_F(ShareRightsTest, AnotherUserLeavesSlotsFree) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ShareJob resident = job();
  Shared<int> attached;
  Shared<int> over;
  JobProcess stranger([&] {
    become(kStranger);
    const Fd file(::open(path("column").c_str(), O_RDONLY | O_CLOEXEC));
    std::vector<Fd> jobs(1100);
    int welcome_count = 0;
    for (Fd& it : jobs) {
      it = connect();
      welcome_count += attach(it, file.get()) == "welcome";
    }
    EXPECT_EQ(welcome_count, 512);
    *attached = 1;
    over.await(1);
  });
  attached.await(1);
  JobProcess other([&] {
    become(kOther);
    ShareJob job = this->job();
    EXPECT_EQ(sweep(job), hash_);
  });
  EXPECT_EQ(other.wait(), 0);
  ShareJob late = job();
  EXPECT_EQ(sweep(late), hash_);
  *over = 1;
  EXPECT_EQ(stranger.wait(), 0);
}

TEST_F(ShareRightsTest, AJobNeedsTheRightToRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ShareJob resident = job();
  ASSERT_EQ(::chmod(path("column").c_str(), 0600), 0);
  JobProcess stranger([&] {
    become(kStranger);
    graphlane_share* job = nullptr;
    EXPECT_EQ(graphlane_share_init_grid(dir_.c_str(), nullptr, &job, nullptr), -EACCES);
    // Its own messages give nothing either: it may connect, and gets no reply.
    const Fd file(::open(path("column").c_str(), O_PATH | O_CLOEXEC));
    EXPECT_EQ(attach(connect(), file.get()),
              "column: file 0 is not one that the job has open for reading");
  });
  EXPECT_EQ(stranger.wait(), 0);
}

TEST_F(ShareRightsTest, AnotherUserWithReadAccessSharesRootsCoordinator) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ShareJob resident = job();
  ASSERT_EQ(sweep(resident), hash_);
  JobProcess other([&] {
    become(kOther);
    ShareJob job = this->job();
    EXPECT_EQ(job.statistics().jobs, 2u);
    EXPECT_EQ(sweep(job), hash_);
    // It may read, and nothing else.
    const TestEdge edge{1, 2};
    EXPECT_EQ(graphlane_share_update(job.get(), 0, 0, &edge, sizeof edge), -EACCES);
  });
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(sweep(resident), hash_);
}

// The coordinator once allocated memory of that size, and ended.
TEST_F(ShareRightsTest, ALabelFileOfAnySizeBesideAnotherUsersGraphIsHarmless) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ShareJob resident = job();
  const pid_t coordinator = this->coordinator();
  std::filesystem::create_directory(path("own"));
  std::filesystem::copy_file(path("column"), path("own/column"));
  const std::string labels = path("own/" + label_file_name("column"));
  std::ofstream(labels).close();
  if (::truncate(labels.c_str(), off_t{1} << 42) != 0) GTEST_SKIP() << "no files of 4 TiB here";
  for (const std::string& name : {path("own"), path("own/column"), labels}) {
    ASSERT_EQ(::chown(name.c_str(), kStranger, kStranger), 0);
  }
  JobProcess stranger([&] {
    become(kStranger);
    const Fd file(::open(path("own/column").c_str(), O_RDONLY | O_CLOEXEC));
    const Fd socket = connect();
    ASSERT_EQ(attach(socket, file.get(), "column", path("own")), "welcome");
    const uint64_t all = (1u << kPartitions) - 1;
    ASSERT_TRUE(send_head(socket.get(), SweepMessage{.wants_labels = 1},
                          {reinterpret_cast<const char*>(&all), sizeof all}));
    ASSERT_TRUE(send_head(socket.get(), NextMessage{}));
    ASSERT_TRUE(receive_message(socket.get()));
    // The labels are made, which begins when those in the file are refused.
    StatisticsMessage statistics;
    do {
      ASSERT_TRUE(send_head(socket.get(), PlainMessage{Kind::kAskStatistics}));
      const auto answer = receive_message(socket.get());
      ASSERT_TRUE(answer && answer->read(statistics));
    } while (statistics.labelled_partitions == 0);
  });
  EXPECT_EQ(stranger.wait(), 0);
  EXPECT_EQ(sweep(resident), hash_);
  EXPECT_EQ(this->coordinator(), coordinator);
}

// The value decides the chunk size of all later jobs.
TEST_F(ShareRightsTest, AnotherUsersVertexSizeIsLimitedToAPage) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  JobProcess server = serve();
  const auto chunk_bytes = [&](uid_t user, uint32_t vertex_bytes) {
    Shared<uint64_t> told;
    JobProcess job([&] {
      become(user);
      graphlane_share_options options = this->options();
      options.vertex_bytes = vertex_bytes;
      *told = ShareJob::grid(dir_.c_str(), options).statistics().chunk_bytes;
    });
    EXPECT_EQ(job.wait(), 0);
    return told->load();
  };
  EXPECT_EQ(chunk_bytes(kOther, UINT32_MAX), chunk_bytes(0, 4096));
  EXPECT_EQ(chunk_bytes(0, UINT32_MAX), 64u);
  server.send(SIGTERM);
  EXPECT_EQ(server.wait(), -SIGTERM);
}

TEST_F(ShareRightsTest, AnotherUsersGraphGetsOnlyTheMemoryLeft) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  budget_bytes_ = graph_bytes() + graph_bytes() / 6;
  ShareJob resident = job();
  JobProcess other([&] {
    become(kOther);
    ShareJob fits = job_by_parts(8);
    EXPECT_EQ(sweep(fits), hash_);
    try {
      job_by_parts(4);
      ADD_FAILURE() << "there is no room for it";
    } catch (const ShareError& refused) {
      EXPECT_EQ(refused.code(), ENOMEM);
      // 8 partitions need 20,000 bytes, 8 × (256 + 24) of tables and 2 for the job. 4 partitions
      // need as many bytes for two.
      EXPECT_STREQ(refused.what(),
                   "column: wants 41121 bytes of the buffers' budget, other graphs leave 4424");
    }
  });
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(sweep(resident), hash_);
}

// They hold no loaded bytes, so they cost none of the budget: 512 of 160 MB each.
TEST_F(ShareRightsTest, AnotherUsersTablesCountAgainstTheBudget) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  budget_bytes_ = graph_bytes() + (uint64_t{1} << 20);
  ShareJob resident = job();
  JobProcess stranger([&] {
    become(kStranger);
    const Fd file(::open(path("column").c_str(), O_RDONLY | O_CLOEXEC));
    Layout layout{
        .partition_count = kPartitionsMax, .record = {8, 0}, .vertex_count = 1, .ranges = {}};
    EXPECT_EQ(attach(connect(), file.get(), layout),
              "column: wants 268435456 bytes of the buffers' budget, other graphs leave 1048576");
    layout.partition_count = 1;
    layout.ranges.resize(100'000);
    EXPECT_EQ(attach(connect(), file.get(), layout),
              "the graph's layout is not sealed, or larger than 1048576 bytes");
    // Each of its jobs has sets of its partitions.
    layout.partition_count = 3000;
    layout.ranges.clear();
    std::vector<Fd> jobs(512);
    std::string answer = "welcome";
    size_t welcome_count = 0;
    for (Fd& it : jobs) {
      it = connect();
      answer = attach(it, file.get(), layout);
      if (answer != "welcome") break;
      ++welcome_count;
    }
    EXPECT_EQ(welcome_count, (1'048'576u - 3000 * 256) / 750);
    EXPECT_NE(answer.find("wants 750 bytes"), answer.npos) << answer;
  });
  EXPECT_EQ(stranger.wait(), 0);
  EXPECT_EQ(sweep(resident), hash_);
  EXPECT_EQ(resident.statistics().jobs, 1u);
}

// Each once got a part of the budget: with 512 of them, other graphs had next to none.
TEST_F(ShareRightsTest, AnotherUsersGraphsAreLimited) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ShareJob resident = job();
  Shared<int> attached;
  Shared<int> over;
  JobProcess stranger([&] {
    become(kStranger);
    const Fd file(::open(path("column").c_str(), O_RDONLY | O_CLOEXEC));
    std::vector<Fd> jobs(9);
    Layout layout = this->layout();
    for (Fd& it : jobs) {
      it = connect();
      ++layout.vertex_count;
      EXPECT_EQ(attach(it, file.get(), layout),
                &it < &jobs.back() ? "welcome" : "column: this user has 8 graphs here already");
    }
    // Jobs of others do not count, nor does a graph that it has already.
    EXPECT_EQ(attach(connect(), file.get()), "welcome");
    --layout.vertex_count;
    EXPECT_EQ(attach(connect(), file.get(), layout), "welcome");
    *attached = 1;
    over.await(1);
  });
  attached.await(1);
  JobProcess other([&] {
    become(kOther);
    EXPECT_EQ(sweep(*std::make_unique<ShareJob>(job_by_parts(8))), hash_);
  });
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(sweep(resident), hash_);
  *over = 1;
  EXPECT_EQ(stranger.wait(), 0);
}

// A graph has as many edges as its ranges say, and these may overlap. Labels once did too.
TEST_F(ShareRightsTest, AnotherUsersLabelsCountAgainstTheBudget) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  constexpr uint32_t kCopies = 64;
  budget_bytes_ = graph_bytes() + 400'000;
  ShareJob resident = job();
  JobProcess stranger([&] {
    become(kStranger);
    const Fd file(::open(path("column").c_str(), O_RDONLY | O_CLOEXEC));
    Layout layout{
        .partition_count = kCopies, .record = {8, 0}, .vertex_count = kVertices, .ranges = {}};
    for (uint32_t p = 0; p < kCopies; ++p) layout.ranges.push_back({p, 0, 0, graph_bytes()});
    const Fd socket = connect();
    ASSERT_EQ(attach(socket, file.get(), layout), "welcome");
    StatisticsMessage statistics;
    for (int i = 0; i < 3; ++i) {
      const uint64_t all = ~uint64_t{0};
      ASSERT_TRUE(send_head(socket.get(), SweepMessage{.wants_labels = 1},
                            {reinterpret_cast<const char*>(&all), sizeof all}));
      PlainMessage plain{};
      do {
        ASSERT_TRUE(send_head(socket.get(), NextMessage{}));
        const auto answer = receive_message(socket.get());
        ASSERT_TRUE(answer && answer->read(plain));
      } while (plain.kind == Kind::kUnits);
      ASSERT_EQ(plain.kind, Kind::kSweepEnd);
      ::usleep(100'000);  // they are made in the background
      ASSERT_TRUE(send_head(socket.get(), PlainMessage{Kind::kAskStatistics}));
      const auto answer = receive_message(socket.get());
      ASSERT_TRUE(answer && answer->read(statistics));
    }
    // 8 bytes for each of 1000 sources, and half of what the tables leave.
    EXPECT_GT(statistics.labelled_partitions, 20u);
    EXPECT_LT(statistics.labelled_partitions, 25u);
  });
  EXPECT_EQ(stranger.wait(), 0);
  EXPECT_EQ(sweep(resident), hash_);
}

// An updated graph stays after its jobs have gone, and each layout of a file is a graph. The file's
// state before a write is not kept.
TEST_F(ShareRightsTest, AnotherUsersUpdatesAreLimitedToFewGraphs) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  budget_bytes_ = graph_bytes() + (uint64_t{1} << 20);
  ShareJob resident = job();
  std::filesystem::copy_file(path("column"), path("own"));
  ASSERT_EQ(::chown(path("own").c_str(), kStranger, kStranger), 0);
  JobProcess stranger([&] {
    become(kStranger);
    const Fd file(::open(path("own").c_str(), O_RDWR | O_CLOEXEC));
    const auto update = [&](uint64_t size_bytes, uint64_t vertex_count) -> std::string {
      const Layout layout{
          .partition_count = 1, .record = {8, 0}, .vertex_count = vertex_count, .ranges = {}};
      const Fd socket = connect();
      const std::string attached = attach(socket, file.get(), layout);
      if (attached != "welcome") return attached;
      const auto bytes = make_sealed(std::string(size_bytes, 'x'));
      const int fds[] = {bytes->get(), file.get()};
      EXPECT_TRUE(send_head(socket.get(), UpdateMessage{}, {}, fds));
      const auto answer = receive_message(socket.get());
      PlainMessage plain{};
      if (!answer || !answer->read(plain)) return "cut off";
      return plain.kind == Kind::kUpdated ? "done"
                                          : std::string(answer->after(sizeof(RefusalMessage)));
    };
    EXPECT_NE(update(2 << 20, 1).find("wants 2097152 bytes"), std::string::npos);
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(update(1000, 1 + static_cast<uint64_t>(i)),
                i < 8 ? "done" : "column: this user has 8 graphs here already");
    }
    const timespec times[2] = {{1, 0}, {1, 0}};
    ASSERT_EQ(::futimens(file.get(), times), 0);
    EXPECT_EQ(update(1000, 10), "done");
  });
  EXPECT_EQ(stranger.wait(), 0);
  EXPECT_EQ(sweep(resident), hash_);
}

// This once ended the coordinator.
TEST_F(ShareRightsTest, ALayoutLargerThanMemoryIsRefused) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "not applicable: a sanitizer needs address space without end";
#endif
  ShareJob resident = job();
  EXPECT_EQ(sweep(resident), hash_);  // so that what it needs for that is there
  const pid_t coordinator = this->coordinator();
  uint64_t pages = 0;
  std::ifstream("/proc/" + std::to_string(coordinator) + "/statm") >> pages;
  const rlim_t bytes_max = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + (64u << 20);
  const rlimit limit{.rlim_cur = bytes_max, .rlim_max = bytes_max};
  ASSERT_EQ(::prlimit(coordinator, RLIMIT_AS, &limit, nullptr), 0);
  const Fd file(::open(path("column").c_str(), O_RDONLY | O_CLOEXEC));
  Layout layout = this->layout();
  layout.ranges.resize(2'000'000,
                       {.partition = kPartitions - 1, .file = 0, .offset = 0, .length_bytes = 0});
  EXPECT_EQ(attach(connect(), file.get(), layout), "out of memory");
  EXPECT_EQ(sweep(resident), hash_);
  EXPECT_EQ(this->coordinator(), coordinator);
}

// A stranger that never listened was once waited for until it left: no job could start.
TEST_F(ShareRightsTest, AnotherUserAtRootsAddressIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  for (const bool listens : {true, false}) {
    // The stranger takes root's address before root's coordinator starts.
    ASSERT_TRUE(await_place(false));
    Shared<int> bound;
    Shared<int> over;
    JobProcess stranger([&] {
      become(kStranger);
      const Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
      sockaddr_un address = {};
      address.sun_family = AF_UNIX;
      const std::string place = place_of(0);
      place.copy(address.sun_path + 1, sizeof address.sun_path - 1);
      ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address),
                       static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + place.size())),
                0);
      if (listens) {
        ASSERT_EQ(::listen(socket.get(), 10), 0);
      }
      *bound = 1;
      over.await(1);
    });
    bound.await(1);
    {
      ShareJob alone = job();  // a coordinator of its own
      EXPECT_EQ(sweep(alone), hash_);
      ShareJob too = job();
      EXPECT_EQ(too.statistics().jobs, 1u);
    }
    *over = 1;
    EXPECT_EQ(stranger.wait(), 0);
  }
}

TEST_F(ShareRightsTest, UsersWithoutCommonTrustHaveTheirOwnCoordinators) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  Shared<int> attached;
  std::vector<JobProcess> jobs;
  for (const uid_t user : {kStranger, kOther}) {
    jobs.emplace_back([&, user] {
      become(user);
      if (::access(path("column").c_str(), R_OK) != 0) return;
      ShareJob job = this->job();
      ++*attached;
      attached.await(2);
      EXPECT_EQ(job.statistics().jobs, 1u);
      EXPECT_EQ(sweep(job), hash_);
      ++*attached;
      attached.await(4);
    });
  }
  for (JobProcess& job : jobs) EXPECT_EQ(job.wait(), 0);
}

TEST_F(ShareRightsTest, TheOwnersCoordinatorServesOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown(path("column").c_str(), kOther, kOther), 0);
  Shared<int> attached;
  Shared<int> over;
  JobProcess owner([&] {
    become(kOther);
    ShareJob job = this->job();
    *attached = 1;
    over.await(1);
  });
  attached.await(1);
  JobProcess guest([&] {
    become(kStranger);
    ShareJob job = this->job();
    EXPECT_EQ(job.statistics().jobs, 2u);
    EXPECT_EQ(sweep(job), hash_);
  });
  EXPECT_EQ(guest.wait(), 0);
  *over = 1;
  EXPECT_EQ(owner.wait(), 0);
}

// All users without a mapping share this number in a user namespace, so its coordinator there could
// belong to any of them.
TEST_F(ShareRightsTest, TheOverflowUserOwnsNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  uid_t nobody = 0;
  std::ifstream("/proc/sys/kernel/overflowuid") >> nobody;
  ASSERT_FALSE(is_mapped_user(nobody));
  ASSERT_EQ(::chown(path("column").c_str(), nobody, nobody), 0);
  Shared<int> attached;
  Shared<int> over;
  JobProcess owner([&] {
    become(nobody);
    ShareJob job = this->job();
    *attached = 1;
    over.await(1);
  });
  attached.await(1);
  JobProcess guest([&] {
    become(kOther);
    ShareJob job = this->job();
    EXPECT_EQ(job.statistics().jobs, 1u);
    EXPECT_EQ(sweep(job), hash_);
  });
  EXPECT_EQ(guest.wait(), 0);
  *over = 1;
  EXPECT_EQ(owner.wait(), 0);
}

TEST_F(ShareRightsTest, UsersShareWhatRootServes) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  JobProcess server = serve();
  Shared<int> attached;
  std::vector<JobProcess> jobs;
  for (const uid_t user : {kStranger, kOther}) {
    jobs.emplace_back([&, user] {
      become(user);
      ShareJob job = this->job();
      ++*attached;
      attached.await(2);
      EXPECT_EQ(job.statistics().jobs, 2u);
      EXPECT_EQ(sweep(job), hash_);
      ++*attached;
      attached.await(4);
    });
  }
  for (JobProcess& job : jobs) EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(coordinators().size(), 1u);
  server.send(SIGTERM);
  EXPECT_EQ(server.wait(), -SIGTERM);
}

TEST_F(ShareRightsTest, LoadedBytesAreSharedWithinOneUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const std::string name = path("column");
  const char* files[] = {name.c_str()};
  graphlane_share_options options = this->options();
  options.files = files;
  options.file_count = 1;
  options.partition_count = 1;
  options.load = [](void*, uint32_t, void* memory, uint64_t) -> int64_t {
    if (memory != nullptr) *static_cast<uint32_t*>(memory) = ::geteuid();
    return sizeof(uint32_t);
  };
  const auto first_word = [&] {
    ShareJob job(options);
    uint32_t word = 1;
    job.sweep(
        [&](const graphlane_share_chunk& chunk) { std::memcpy(&word, chunk.data, sizeof word); });
    EXPECT_EQ(job.statistics().loaded_partitions, 1u);
    return word;
  };
  ShareJob resident(options);
  resident.sweep([](const graphlane_share_chunk&) {});
  JobProcess other([&] {
    become(kOther);
    EXPECT_EQ(first_word(), kOther);
  });
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace
}  // namespace graphlane::share
