// SharedCache: several readers, each byte from the devices once, and nothing old or torn.
#include "iomgr/server/shared_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "iomgr/base/files/reopen.h"
#include "iomgr/base/sys.h"
#include "tests/iomgr/imported_file.h"
#include "tests/sizes.h"

namespace graphlane {
namespace {

constexpr uint64_t kSharedFileSize = 40 * kMiB + 12345;

class SharedCacheTest : public ::testing::Test {
 protected:
  // The file is made once, as no test writes to it.
  static void SetUpTestSuite() {
    made_ = std::make_unique<ImportedFile>();
    ASSERT_NO_FATAL_FAILURE(made_->make(kMiB, kSharedFileSize));
  }
  static void TearDownTestSuite() { made_.reset(); }
  void TearDown() override { cache_.reset(); }

  void start(uint64_t budget_mib, std::chrono::milliseconds idle_hold_max = std::chrono::hours(1),
             std::chrono::milliseconds hold_max = SharedCacheOptions::kHoldMost,
             std::chrono::milliseconds remembered = std::chrono::hours(1)) {
    cache_ = std::make_unique<SharedCache>(
        SharedCacheOptions{.budget_bytes = budget_mib * kMiB,
                           .hold_max = hold_max,
                           .idle_hold_max = idle_hold_max,
                           .remembered = remembered},
        [this](const PartRequest& request) { return run(request); },
        [this](const StripedFile&, const SharedCache::Content& content) {
          return content.generation == generation_;
        });
  }

  void start_forgetful(uint64_t budget_mib) {
    start(budget_mib, std::chrono::hours(1), SharedCacheOptions::kHoldMost,
          std::chrono::milliseconds(0));
  }
  void tidy_later() {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    cache_->tidy();
  }

  void close_gate() {
    gate_.emplace();
    gate_opens_ = gate_->get_future().share();
  }

  int run(const PartRequest& request) {
    if (gate_) gate_opens_.wait();
    if (error_ != 0) return error_;
    ++move_count_;
    RequestCutter cutter(request);
    for (LaneIo io; cutter.next(&io);) {
      int error = 0;
      const ssize_t n = sys::preadv(io.fd, io.iov, io.iov_count, io.part_offset);
      if (settle(&io, n < 0 ? -errno : n, &error) != IoStep::kDone) return error ? error : EIO;
      moved_bytes_ += io.moved_bytes;
    }
    return 0;
  }

  // A process that reads, as a client does.
  struct Reader {
    std::unique_ptr<SharedScan> scan;
    SharedFrames frames;
    ~Reader() { frames.unmap(); }
  };
  std::unique_ptr<Reader> reader(pid_t pid, uint32_t client = 0) {
    auto made = std::make_unique<Reader>();
    auto scan = cache_->begin(file_, {.generation = generation_, .time_ns = time_ns_},
                              {.pid = pid, .client = client});
    EXPECT_TRUE(scan);
    made->scan = std::move(*scan);
    EXPECT_TRUE(made->frames.map(made->scan->frames_fd(), kSharedFileSize));
    return made;
  }
  void read_parts(ByteRange range, char* bytes) const {
    for (uint64_t done = 0; done < range.length_bytes;) {
      const Segment at =
          file_->map().first_segment({range.offset + done, range.length_bytes - done});
      EXPECT_EQ(::pread(file_->parts().buffered(at.device_index), bytes + done, at.length_bytes,
                        static_cast<off_t>(at.part_offset)),
                static_cast<ssize_t>(at.length_bytes));
      done += at.length_bytes;
    }
  }
  // The cached bytes of the range; "?" for a missing frame.
  std::string look(const Reader& reader, ByteRange range) const {
    std::string bytes;
    bytes.reserve(range.length_bytes);
    for (uint64_t at = range.offset; at < range.end();) {
      const uint64_t end = std::min(range.end(), (at / kMiB + 1) * kMiB);
      const bool is_there = reader.frames.has(at / kMiB);
      bytes.append(is_there ? end - at : 1, '?');
      if (is_there) read_parts({at, end - at}, &bytes[bytes.size() - (end - at)]);
      at = end;
    }
    return bytes;
  }
  std::string_view expected(ByteRange range) const {
    return std::string_view(content_).substr(range.offset, range.length_bytes);
  }
  static ByteRange mib(uint64_t offset, uint64_t length) { return {offset * kMiB, length * kMiB}; }
  // Whether the bytes were there, or were fetched.
  bool read(Reader& reader, ByteRange range) {
    range.length_bytes = std::min(range.length_bytes, kSharedFileSize - range.offset);
    if (look(reader, range) == expected(range)) return reader.scan->passed(range), true;
    if (reader.scan->fetch(range) != 0) return false;
    const std::string got = look(reader, range);
    if (got.size() != range.length_bytes) return false;  // some of it has gone again
    EXPECT_TRUE(got == expected(range)) << range.offset << "+" << range.length_bytes;
    reader.scan->passed(range);
    return true;
  }
  // In short steps, so that others see it go forwards.
  bool sweep(Reader& reader, uint64_t begin_mib, uint64_t end_mib) {
    bool all = true;
    for (uint64_t at = begin_mib; at < end_mib; ++at) all &= read(reader, mib(at, 1));
    return all;
  }

  inline static std::unique_ptr<ImportedFile> made_;
  const std::string& content_ = made_->content;
  const std::shared_ptr<const StripedFile>& file_ = made_->file;
  std::unique_ptr<SharedCache> cache_;
  std::atomic<uint64_t> generation_{1};
  int64_t time_ns_ = 1;
  std::atomic<int> error_{0};
  std::optional<std::promise<void>> gate_;  // before the devices
  std::shared_future<void> gate_opens_;
  std::atomic<uint64_t> moved_bytes_{0};
  std::atomic<int> move_count_{0};
};

TEST_F(SharedCacheTest, TheImageShowsExactlyTheFetchedFrames) {
  start(64);
  const auto one = reader(1);
  EXPECT_EQ(look(*one, mib(3, 2)), "??");
  ASSERT_EQ(one->scan->fetch({.offset = 3 * kMiB + 5, .length_bytes = kMiB}), 0);
  EXPECT_TRUE(look(*one, mib(3, 2)) == expected(mib(3, 2)));
  EXPECT_EQ(look(*one, mib(5, 1)), "?");
  ASSERT_EQ(one->scan->fetch(mib(40, 1)), 0) << "past the end is cut off";
  EXPECT_TRUE(look(*one, {40 * kMiB, 12345}) == expected({40 * kMiB, 12345}));
}

TEST_F(SharedCacheTest, TwoScansTogetherReadTheDevicesOnce) {
  start(16);
  const auto one = reader(1);
  const auto two = reader(2);
  EXPECT_EQ(one->frames.header().process_count, 2u);
  for (int sweep = 0; sweep < 3; ++sweep) {
    moved_bytes_ = 0;
    for (uint64_t at = 0; at <= 40; at += 4) {
      EXPECT_TRUE(read(*one, mib(at, 4)));
      EXPECT_TRUE(read(*two, mib(at, 4)));
    }
    EXPECT_LE(moved_bytes_, kSharedFileSize + kBlockSize) << sweep;
  }
}

TEST_F(SharedCacheTest, ATrailingScanHits) {
  start(16);
  const auto one = reader(1);
  for (uint64_t at = 0; at < 12; at += 4) EXPECT_TRUE(read(*one, mib(at, 4)));
  const auto two = reader(2);
  const uint64_t before = moved_bytes_;
  for (uint64_t at = 0; at < 12; at += 4) EXPECT_TRUE(read(*two, mib(at, 4)));
  EXPECT_EQ(moved_bytes_, before);
}

// LRU would find nothing.
TEST_F(SharedCacheTest, ASingleScanKeepsItsFirstFrames) {
  start(24);
  const auto one = reader(1);
  for (int sweep = 0; sweep < 4; ++sweep) {
    moved_bytes_ = 0;
    for (uint64_t at = 0; at <= 40; at += 4) EXPECT_TRUE(read(*one, mib(at, 4)));
  }
  // Frames in use count too: the request, and the one before it.
  EXPECT_LE(moved_bytes_, kSharedFileSize - 14 * kMiB);
}

TEST_F(SharedCacheTest, AFrameInFlightIsNotFetchedAgain) {
  start(64);
  const auto one = reader(1);
  const auto two = reader(2);
  close_gate();
  auto first = std::async(std::launch::async, [&] { return one->scan->fetch(mib(0, 8)); });
  auto second = std::async(std::launch::async, [&] { return two->scan->fetch(mib(0, 8)); });
  gate_->set_value();
  EXPECT_EQ(first.get(), 0);
  EXPECT_EQ(second.get(), 0);
  EXPECT_EQ(moved_bytes_, 8 * kMiB);
  EXPECT_TRUE(look(*two, mib(0, 8)) == expected(mib(0, 8)));
}

TEST_F(SharedCacheTest, AFrameThatAnotherScanWantsIsWaitedFor) {
  start(12);
  const auto ahead = reader(1);
  const auto behind = reader(2);
  EXPECT_TRUE(sweep(*behind, 0, 4));
  EXPECT_TRUE(sweep(*ahead, 0, 12));
  moved_bytes_ = 0;
  auto held = std::async(std::launch::async, [&] { return read(*ahead, mib(12, 4)); });
  // Within an hour nothing goes that is wanted; these let it go on.
  EXPECT_TRUE(read(*behind, mib(4, 4)));
  EXPECT_TRUE(read(*behind, mib(8, 4)));
  EXPECT_TRUE(held.get());
  EXPECT_EQ(moved_bytes_, 4 * kMiB) << "only what came new";
}

TEST_F(SharedCacheTest, TheLastScanDoesNotWait) {
  start(8);
  const auto ahead = reader(1);
  const auto behind = reader(2);
  EXPECT_TRUE(sweep(*ahead, 4, 8));
  EXPECT_TRUE(sweep(*reader(3), 12, 16));  // wanted next by the leader
  ASSERT_EQ(ahead->scan->fetch(mib(8, 4)), 0);
  EXPECT_TRUE(sweep(*behind, 0, 4));
  EXPECT_TRUE(look(*ahead, mib(8, 4)) == expected(mib(8, 4))) << "which may be being copied";
}

// The leader needs the frames that the trailing reader wants, while the devices read for a third
// one. The trailing reader goes on until those frames are evicted or `waited_ns` have passed.
class HeldTest : public SharedCacheTest {
 protected:
  bool evicted_within(uint64_t waited_ns) {
    const auto ahead = reader(1);
    const auto behind = reader(2);
    const auto elsewhere = reader(3);
    EXPECT_TRUE(sweep(*behind, 0, 4));
    EXPECT_TRUE(sweep(*ahead, 0, 12));
    close_gate();
    auto works = std::async(std::launch::async, [&] { return elsewhere->scan->fetch(mib(30, 1)); });
    while (cache_->stats().resident_bytes < 13 * kMiB) std::this_thread::yield();
    auto held = std::async(std::launch::async, [&] { return ahead->scan->fetch(mib(12, 6)); });
    while (cache_->stats().stalled_ns < waited_ns && cache_->stats().evictions == 0) {
      behind->scan->passed(mib(4, 1));  // asks for nothing, which the devices would have to bring
    }
    const bool evicted = cache_->stats().evictions > 0;
    gate_->set_value();
    EXPECT_EQ(works.get(), 0);
    EXPECT_EQ(held.get(), 0);
    return evicted;
  }
};

TEST_F(HeldTest, ALeadingScanWaitsWhileTheDevicesWork) {
  start(13, std::chrono::milliseconds(1));  // while they do not
  EXPECT_FALSE(evicted_within(100'000'000));
}

TEST_F(HeldTest, ALeadingScanWaitsAtMostItsLimit) {
  start(13, std::chrono::hours(1), std::chrono::milliseconds(100));
  EXPECT_TRUE(evicted_within(10'000'000'000));
}

TEST_F(SharedCacheTest, WithoutHoldingNoScanWaits) {
  start(8, std::chrono::hours(1), std::chrono::milliseconds(0));
  const auto ahead = reader(1);
  const auto behind = reader(2);
  EXPECT_TRUE(sweep(*behind, 0, 4));
  EXPECT_TRUE(sweep(*ahead, 0, 16));
  EXPECT_EQ(cache_->stats().stalled_ns, 0u);
}

TEST_F(SharedCacheTest, ReclaimedFramesAreFetchedAgain) {
  start(64);
  const auto one = reader(1);
  EXPECT_TRUE(read(*one, mib(0, 8)));
  const PartFiles& parts = file_->parts();
  for (uint32_t d = 0; d < parts.count(); ++d) {
    ASSERT_EQ(::fdatasync(parts.buffered(d)), 0);
    ASSERT_EQ(::posix_fadvise(parts.buffered(d), 0, 0, POSIX_FADV_DONTNEED), 0);
  }
  char byte;
  if (sys::pread_cached(parts.buffered(0), &byte, 1, 0) >= 0 || errno != EAGAIN) {
    GTEST_SKIP() << "not applicable: this filesystem does not tell what is in memory";
  }
  moved_bytes_ = 0;
  EXPECT_EQ(one->scan->fetch(mib(0, 4)), 0);
  EXPECT_EQ(moved_bytes_, 4 * kMiB);
  EXPECT_EQ(cache_->stats().reclaimed_bytes, 4 * kMiB);
  EXPECT_EQ(cache_->stats().resident_bytes, 8 * kMiB);
}

TEST_F(SharedCacheTest, ClientsOfOneProcessAreDistinct) {
  start(16);
  const auto one = reader(1, 10);
  const auto two = reader(1, 11);
  EXPECT_EQ(one->frames.header().process_count, 2u);
  const auto more = reader(1, 11);
  EXPECT_EQ(one->frames.header().process_count, 2u);
}

// All the way round: each has one scan ahead and one behind.
TEST_F(SharedCacheTest, OneOfSeveralScansInACircleIsTheLast) {
  start(8);
  const auto first = reader(1);
  const auto second = reader(2);
  const auto third = reader(3);
  EXPECT_TRUE(sweep(*third, 13, 16));  // the widest gap is behind this one
  EXPECT_TRUE(sweep(*second, 23, 26));
  EXPECT_TRUE(sweep(*first, 33, 36));
  auto held = std::async(std::launch::async, [&] { return read(*first, mib(36, 4)); });
  for (uint64_t at = 16; at < 36; at += 4) {
    EXPECT_TRUE(read(*third, mib(at, 4)));
    if (at < 24) continue;
    EXPECT_TRUE(read(*second, mib(at + 2, 2)));
  }
  EXPECT_TRUE(held.get());
}

TEST_F(SharedCacheTest, CopiedFramesMakeRoom) {
  start(8);
  const auto has_copied = reader(1);
  EXPECT_TRUE(read(*has_copied, mib(0, 4)));
  const auto copies = reader(2);
  ASSERT_EQ(copies->scan->fetch(mib(10, 4)), 0);
  EXPECT_TRUE(read(*reader(3), mib(30, 4))) << "now, not in an hour";
  EXPECT_TRUE(look(*copies, mib(10, 4)) == expected(mib(10, 4)));
}

// A process has two threads, which ask for alternate blocks.
TEST_F(SharedCacheTest, SmallBlocksOfAStreamAreReadAheadInLargePieces) {
  start(10);
  const auto one = reader(1);
  const auto two = reader(1);
  for (uint64_t at = 0; at < 20; ++at) {
    Reader& next = at % 2 == 0 ? *one : *two;
    EXPECT_TRUE(read(next, mib(at, 1)));
    next.scan->fetch_ahead();
    EXPECT_LE(moved_bytes_, (at + 1 + 5) * kMiB) << "half of the memory is ahead of it at most";
  }
  EXPECT_GT(moved_bytes_, 22 * kMiB);
  EXPECT_LE(move_count_, 11);
  moved_bytes_ = 0;
  EXPECT_TRUE(read(*one, mib(30, 1)));
  one->scan->fetch_ahead();
  EXPECT_LE(moved_bytes_, 3 * kMiB) << "who jumps may jump again";
}

// GridGraph's blocks are of 24 MiB at most; a client asks for one in two pieces.
TEST_F(SharedCacheTest, PiecesOfSeveralThreadsAreOneStream) {
  start(20);
  const auto one = reader(1);
  const auto two = reader(1);
  EXPECT_TRUE(read(*one, mib(0, 4)));
  EXPECT_TRUE(read(*two, mib(5, 4)));
  EXPECT_TRUE(read(*one, mib(4, 1)));
  EXPECT_TRUE(read(*two, mib(9, 1)));
  moved_bytes_ = 0;
  two->scan->fetch_ahead();
  EXPECT_EQ(moved_bytes_, 10 * kMiB) << "half of the memory";
}

TEST_F(SharedCacheTest, AStoppedScanIsNotWaitedFor) {
  start(8);
  const auto stopped = reader(1);
  EXPECT_TRUE(sweep(*stopped, 0, 4));
  const auto other = reader(2);
  for (int time = 0; time < 2; ++time) {
    for (uint64_t at = 0; at <= 40; at += 4) EXPECT_TRUE(read(*other, mib(at, 4)));
  }
}

TEST_F(SharedCacheTest, AScanThatRereadsIsNotWaitedFor) {
  start(8);
  const auto stays = reader(1);
  const auto other = reader(2);
  for (uint64_t at = 0; at <= 40; at += 4) {
    EXPECT_TRUE(read(*stays, mib(20, 1)));
    EXPECT_TRUE(read(*other, mib(at, 4)));
  }
  EXPECT_EQ(cache_->stats().stalled_ns, 0u);
}

TEST_F(SharedCacheTest, ARereadingScanDoesNotWait) {
  start(8);
  const auto sweeps = reader(1);
  EXPECT_TRUE(sweep(*reader(3), 4, 8));  // wanted next by the sweeping scan
  EXPECT_TRUE(sweep(*sweeps, 0, 4));
  EXPECT_TRUE(read(*reader(2), mib(20, 8)));
  EXPECT_EQ(cache_->stats().stalled_ns, 0u);
}

// Each may wait an hour for the other.
TEST_F(SharedCacheTest, TwoScansThatNeedEachOthersRoomGoOn) {
  start(6);
  const auto one = reader(1);
  const auto two = reader(2);
  EXPECT_TRUE(sweep(*one, 0, 3));
  EXPECT_TRUE(sweep(*two, 20, 23));
  auto first = std::async(std::launch::async, [&] { return one->scan->fetch(mib(0, 4)); });
  auto second = std::async(std::launch::async, [&] { return two->scan->fetch(mib(20, 4)); });
  EXPECT_EQ(first.get(), 0);
  EXPECT_EQ(second.get(), 0);
}

TEST_F(SharedCacheTest, ReadersOfAllKindsSeeTheRightBytesWithinTheBudget) {
  start(16, std::chrono::milliseconds(5));
  const uint64_t seed = std::random_device{}();
  std::atomic<uint64_t> found{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      auto mine = reader(t);
      uint64_t at = 0;
      for (int i = 0; i < 150; ++i) {
        const uint64_t length = 1 + random() % (5 * kMiB);
        if (at >= kSharedFileSize || random() % 20 == 0) at = random() % kSharedFileSize;
        if (random() % 30 == 0) mine = reader(t);
        found += read(*mine, {at, length});
        if (random() % 4 == 0) mine->scan->fetch_ahead();
        EXPECT_LE(cache_->stats().resident_bytes, 16 * kMiB);
        if (random() % 10 == 0) cache_->tidy();
        at += length;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(found, 300u) << "seed " << seed;
}

TEST_F(SharedCacheTest, TooLargeRequestsAreRejected) {
  start(4);
  const auto one = reader(1);
  EXPECT_EQ(one->scan->fetch(mib(0, 8)), EAGAIN);
  EXPECT_EQ(moved_bytes_, 0u);
  EXPECT_TRUE(read(*one, mib(0, 4)));
}

// The file has a size but no bytes: `truncate -s 1E`.
TEST_F(SharedCacheTest, AFileOfTooManyFramesIsRejected) {
  start(4);
  const Fd stub(::open((made_->volume->root() + "/source").c_str(), O_RDONLY | O_CLOEXEC));
  const auto sparse = StripedFile::open(*made_->volume, stub.get(), file_->layout(), "sparse");
  ASSERT_TRUE(sparse);
  (*sparse)->set_size(uint64_t{1} << 60);
  const auto scan = cache_->begin(*sparse, {.generation = generation_}, {.pid = 1});
  ASSERT_FALSE(scan);
  EXPECT_EQ(scan.error().code, EFBIG);
  EXPECT_EQ(cache_->stats().scan_count, 0u);
}

TEST_F(SharedCacheTest, ARejectedClientKeepsNothing) {
  start(6);
  const auto refused = reader(1);
  const auto copies = reader(2);
  ASSERT_EQ(copies->scan->fetch(mib(16, 2)), 0);
  EXPECT_TRUE(read(*refused, mib(0, 4)));
  EXPECT_EQ(refused->scan->fetch(mib(0, 12)), EAGAIN);
  EXPECT_TRUE(read(*reader(3), mib(12, 4))) << "now, not in an hour";
  EXPECT_TRUE(look(*copies, mib(16, 2)) == expected(mib(16, 2)));
}

TEST_F(SharedCacheTest, AnErrorIsReportedAndRetriedNextTime) {
  start(16);
  const auto one = reader(1);
  error_ = EIO;
  EXPECT_EQ(one->scan->fetch(mib(0, 4)), EIO);
  EXPECT_EQ(look(*one, mib(0, 1)), "?");
  EXPECT_EQ(cache_->stats().resident_bytes, 0u);
  error_ = 0;
  EXPECT_TRUE(read(*one, mib(0, 4)));
}

TEST_F(SharedCacheTest, AChangedFileIsNotFetched) {
  start(16);
  const auto old = reader(1);
  EXPECT_TRUE(read(*old, mib(0, 4)));
  generation_ = 2;
  EXPECT_EQ(old->scan->fetch(mib(0, 4)), ESTALE);
  const auto now = reader(1);
  EXPECT_EQ(look(*now, mib(0, 1)), "?") << "it is another image";
  EXPECT_TRUE(read(*now, mib(0, 4)));
  cache_->tidy();
  EXPECT_EQ(cache_->stats().resident_bytes, 4 * kMiB) << "the old one has given its memory back";
}

TEST_F(SharedCacheTest, AChangeBehindTheServerStartsAnotherImage) {
  start(16);
  const auto old = reader(1);
  EXPECT_TRUE(read(*old, mib(0, 4)));
  time_ns_ = 2;
  const auto now = reader(2);
  EXPECT_EQ(look(*now, mib(0, 1)), "?");
  EXPECT_EQ(now->frames.header().content_time_ns, 2);
  EXPECT_EQ(now->frames.header().process_count, 1u);
}

TEST_F(SharedCacheTest, MemoryIsFreedAfterTheLastReader) {
  start_forgetful(16);
  EXPECT_TRUE(read(*reader(1), mib(0, 4)));
  tidy_later();
  EXPECT_EQ(cache_->stats().resident_bytes, 0u);
  EXPECT_EQ(cache_->stats().scan_count, 0u);
}

// Its file was once forgotten with it, which left its frames in the list of reclaimable frames
// without a file.
TEST_F(SharedCacheTest, FramesFetchedForAKilledProgramAreDropped) {
  start_forgetful(8);
  const pid_t killed = ::fork();
  if (killed == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(killed, nullptr, 0), killed);
  auto gone = reader(killed);
  close_gate();
  auto fetched = std::async(std::launch::async, [&] { return gone->scan->fetch(mib(0, 4)); });
  while (cache_->stats().resident_bytes == 0) std::this_thread::yield();
  for (int time = 0; time < 3; ++time) tidy_later();
  gate_->set_value();
  EXPECT_EQ(fetched.get(), 0);
  gone = nullptr;
  tidy_later();
  EXPECT_EQ(cache_->stats().resident_bytes, 0u);
  time_ns_ = 2;  // another image
  EXPECT_TRUE(sweep(*reader(1), 0, 12)) << "which looks at all that may go";
}

TEST_F(SharedCacheTest, ReadersCannotWriteTheImage) {
  start(16);
  const auto one = reader(1);
  const int fd = one->scan->frames_fd();
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_EQ(::pwrite(fd, "x", 1, 0), -1);
  if (::geteuid() != 0) GTEST_SKIP() << "not applicable: only root can become another user";
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = ::setresuid(65534, 65534, 65534) == 0 && !reopen(fd, O_RDWR);
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "another user could write what this one reads";
}

}  // namespace
}  // namespace graphlane
