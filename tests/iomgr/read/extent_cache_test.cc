// ExtentCache over real parts: right bytes, few I/Os, errors, and its budget.
#include "iomgr/read/extent_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <random>
#include <thread>
#include <vector>

#include "tests/iomgr/base/process/memory_files.h"
#include "tests/iomgr/read/extent_fixture.h"

namespace graphlane {
namespace {

class ExtentCacheTest : public ExtentFixture {};

// Once with prefetch inside the reads, once with prefetch in the background.
class ExtentCacheThreadsTest : public ExtentCacheTest,
                               public ::testing::WithParamInterface<bool> {};

TEST_P(ExtentCacheThreadsTest, ReadRightBytesWithMemoryForSome) {
  starts_ = GetParam();
  make_file({.stripe_depth_bytes = 3 * kMiB / 2, .device_count = 3, .first_device = 1},
            40 * kMiB + 12345);
  start(16 * kMiB);
  const uint64_t seed = std::random_device{}();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      for (int i = 0; i < 150; ++i) {
        const ByteRange range{random() % (content_.size() + kMiB), 1 + random() % (5 * kMiB)};
        const std::string got = read(range);
        if (got == "declined" && expected(range).size() < kMiB / 2) continue;
        ASSERT_TRUE(got == expected(range))
            << "seed " << seed << ": " << range.offset << "+" << range.length_bytes;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache_->stats().frames.resident_bytes, 16 * kMiB);
}

INSTANTIATE_TEST_SUITE_P(Begun, ExtentCacheThreadsTest, ::testing::Bool());

TEST_F(ExtentCacheTest, ASequenceOfSmallReadsReachesTheDevicesInLargeOnes) {
  make_file({.stripe_depth_bytes = 4 * kMiB, .device_count = 2, .first_device = 0}, 32 * kMiB);
  start(64 * kMiB);
  std::string got;
  read({0, 65536});  // a single read is no stream: declined
  for (uint64_t at = 65536; at < content_.size(); at += 65536) got += read({at, 65536});
  EXPECT_TRUE(got == expected({65536, content_.size()}));
  EXPECT_LE(io_count_, 2u * 4u + 2u) << "two devices, four rows of 8 MiB";
  EXPECT_LE(moved_bytes_, 32 * kMiB);
  EXPECT_EQ(cache_->stats().prefetched.unused, 0u);
}

TEST_F(ExtentCacheTest, SmallReadsHereAndThereAreDeclined) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 32 * kMiB);
  start(32 * kMiB);
  EXPECT_EQ(read({20 * kMiB, 4096}), "declined");
  EXPECT_EQ(read({3 * kMiB, 4096}), "declined");
  EXPECT_EQ(io_count_, 0u);
  const std::string around = read({20 * kMiB, kMiB});
  EXPECT_TRUE(read({20 * kMiB + 8192, 4096}) == around.substr(8192, 4096))
      << "what is there is served";
}

// "A sweep over a file twice the cache: at least 0.45 of bytes served from memory." Threads take
// the blocks in turn, as an engine's do. On a busy machine one may be held up: the others wait
// before they are far ahead, so the delay does not count.
struct Sweepers {
  int thread_count;
  bool begun_ahead;
  // half of the file, the prefetched bytes, and the threads' copies in flight
  uint64_t budget_bytes;
};

class CyclicSweepTest : public ExtentCacheTest, public ::testing::WithParamInterface<Sweepers> {
 protected:
  static constexpr uint64_t kBlock = 3 * kMiB;
  static constexpr uint64_t kBlocksInFront = 8;

  struct Blocks {
    explicit Blocks(uint64_t count) : read(count) {}
    std::atomic<uint64_t> next{0};
    std::vector<std::atomic<bool>> read;
  };

  void work(Blocks& blocks) {
    std::vector<Page> buffer(kBlock / sizeof(Page));
    for (uint64_t i; (i = blocks.next.fetch_add(1)) < blocks.read.size();) {
      if (i >= kBlocksInFront) blocks.read[i - kBlocksInFront].wait(false);
      const uint64_t at = i * kBlock;
      EXPECT_TRUE(cache_->read(file(), {at, kBlock}, buffer.data(), *this));
      EXPECT_EQ(content_.compare(at, kBlock, buffer[0].bytes, kBlock), 0);
      blocks.read[i] = true;
      blocks.read[i].notify_all();
    }
  }

  // The share of the file that came from the devices.
  double sweep() {
    const uint64_t before = moved_bytes_ + started_bytes_;
    Blocks blocks(content_.size() / kBlock);
    std::vector<std::thread> threads;
    for (int t = 0; t < GetParam().thread_count; ++t) threads.emplace_back([&] { work(blocks); });
    for (std::thread& thread : threads) thread.join();
    const uint64_t moved = moved_bytes_ + started_bytes_ - before;
    return static_cast<double>(moved) / static_cast<double>(content_.size());
  }
};

TEST_P(CyclicSweepTest, TwiceTheCacheHitsHalf) {
  make_file({.stripe_depth_bytes = 2 * kMiB, .device_count = 2, .first_device = 0}, 192 * kMiB);
  start(GetParam().budget_bytes);
  starts_ = GetParam().begun_ahead;
  for (int i = 0; i < 6; ++i) sweep();
  double moved = 0;
  for (int i = 0; i < 4; ++i) moved += sweep() / 4;
  EXPECT_LE(moved, 0.55);
}

INSTANTIATE_TEST_SUITE_P(
    Threads, CyclicSweepTest,
    ::testing::Values(Sweepers{1, false, 96 * kMiB}, Sweepers{2, false, 96 * kMiB},
                      Sweepers{6, false, 128 * kMiB}, Sweepers{1, true, 112 * kMiB},
                      Sweepers{2, true, 112 * kMiB}, Sweepers{6, true, 128 * kMiB}));

// One sweep in large reads, by one thread, with prefetch while it computes.
class BegunAheadTest : public ExtentCacheTest {
 protected:
  static constexpr uint64_t kBlock = 8 * kMiB;
  void SetUp() override {
    ExtentCacheTest::SetUp();
    if (!ahead_.works()) GTEST_SKIP() << "no asynchronous I/O here";
    make_file({.stripe_depth_bytes = 2 * kMiB, .device_count = 2, .first_device = 0}, 96 * kMiB);
    start(384 * kMiB);
    starts_ = true;
  }
  // The prefetch is two blocks ahead.
  void make_larger_than_cache() {
    make_file({.stripe_depth_bytes = 2 * kMiB, .device_count = 2, .first_device = 0}, 288 * kMiB);
    cache_->set_budget(216 * kMiB);
  }
  void sweep(uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end; at += kBlock) {
      EXPECT_TRUE(cache_->read(file(), {at, kBlock}, buffer_.data(), *this));
      EXPECT_EQ(content_.compare(at, kBlock, buffer_[0].bytes, kBlock), 0);
    }
  }
  std::vector<Page> buffer_ = std::vector<Page>(kBlock / sizeof(Page));
};

TEST_F(BegunAheadTest, OnlyTheFirstReadsOfASweepWaitInFull) {
  sweep(0, content_.size());
  EXPECT_EQ(moved_bytes_, 2 * kBlock) << "the second one makes it a stream";
  EXPECT_EQ(started_bytes_, content_.size() - 2 * kBlock);
  EXPECT_LE(started_count_, content_.size() / kBlock);
  EXPECT_EQ(cache_->stats().prefetched.unused, 0u);
}

// The waiter once slept until another read, half a minute at most.
TEST_F(BegunAheadTest, AWaiterPollsReadsSubmittedLater) {
  std::promise<void> reserved, go_on;
  std::atomic<bool> first{true};
  before_start_ = [&] {
    if (!first.exchange(false)) return;
    reserved.set_value();
    go_on.get_future().wait();
  };
  std::thread beginner([&] { sweep(0, 2 * kBlock); });  // the second one makes it a stream
  reserved.get_future().wait();
  std::vector<Page> buffer(kBlock / sizeof(Page));
  std::future<bool> waiter = std::async(std::launch::async, [&] {
    return cache_->read(file(), {2 * kBlock, kBlock}, buffer.data(), *this).has_value();
  });
  EXPECT_EQ(waiter.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  go_on.set_value();
  beginner.join();  // and reads no more
  EXPECT_EQ(waiter.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_TRUE(waiter.get());
  EXPECT_EQ(content_.compare(2 * kBlock, kBlock, buffer[0].bytes, kBlock), 0);
}

// The pieces of two readers: each waits for one before it submits the next.
TEST_F(BegunAheadTest, ReadsInTurnWaitForTheirFirstPieceOnly) {
  make_file({.stripe_depth_bytes = 2 * kMiB, .device_count = 2, .first_device = 0}, 96 * kMiB);
  const uint64_t half = content_.size() / 2;
  for (int i = 0; i < 2; ++i) {
    for (uint64_t at = 0; at < half; at += kMiB / 2) {
      for (const uint64_t place : {at, half + at}) {
        const uint32_t thread = place == at ? 1 : 2;
        ASSERT_TRUE(cache_->read_in_turn(file(), thread, {place, kMiB / 2}, buffer_.data(), *this));
        ASSERT_EQ(content_.compare(place, kMiB / 2, buffer_[0].bytes, kMiB / 2), 0);
      }
    }
    EXPECT_EQ(moved_bytes_, 2 * kMiB) << "a frame of each";
    EXPECT_EQ(moved_bytes_ + started_bytes_, content_.size()) << "and nothing twice";
  }
}

TEST_F(BegunAheadTest, OnDisksTrailingReadersWaitForTheLeader) {
  restart({.budget_bytes = 384 * kMiB, .turns_wait = true});
  const auto read = [&](uint32_t thread, uint64_t at) {
    std::vector<Page> buffer(kMiB / sizeof(Page));
    return cache_->read_in_turn(file(), thread, {at, kMiB}, buffer.data(), *this).has_value() &&
           content_.compare(at, kMiB, buffer[0].bytes, kMiB) == 0;
  };
  std::promise<void> begun, go_on;
  std::atomic<bool> first{true};
  before_start_ = [&] {
    if (!first.exchange(false)) return;
    begun.set_value();
    go_on.get_future().wait();
  };
  std::future<bool> front = std::async(std::launch::async, read, 1, 0);
  begun.get_future().wait();
  const uint64_t moved = moved_bytes_;
  std::future<bool> behind = std::async(std::launch::async, read, 2, 20 * kMiB);
  EXPECT_EQ(behind.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  EXPECT_TRUE(read(3, 60 * kMiB)) << "who is further behind has a sweep of his own";
  EXPECT_EQ(moved_bytes_, moved + kMiB);
  go_on.set_value();
  EXPECT_TRUE(front.get());
  EXPECT_TRUE(behind.get());
}

TEST_F(BegunAheadTest, SmallPiecesInTurnPrefetchOnlyStreams) {
  std::vector<Page> buffer(1);
  for (uint64_t at = 60 * kMiB; at > 0; at -= 20 * kMiB) {
    EXPECT_FALSE(cache_->read_in_turn(file(), /*thread=*/1, {at, 4096}, buffer.data(), *this));
  }
  EXPECT_EQ(started_bytes_, 0u);
}

TEST_F(BegunAheadTest, PauseDropsPrefetchedFrames) {
  sweep(0, 2 * kBlock);
  EXPECT_GT(started_count_, 0u);
  cache_->pause(*this);
  EXPECT_EQ(cache_->stats().prefetch_bytes, 0u);
  EXPECT_EQ(cache_->stats().frames.resident_bytes, 0u);
}

TEST_F(BegunAheadTest, CachedFramesAreNotPrefetched) {
  sweep(0, content_.size());
  sweep(0, content_.size());
  EXPECT_EQ(moved_bytes_ + started_bytes_, content_.size());
}

TEST_F(BegunAheadTest, TheNextSweepIsPrefetchedToo) {
  make_larger_than_cache();
  sweep(0, content_.size());
  const uint64_t moved = moved_bytes_;
  sweep(0, content_.size());
  EXPECT_LE(moved_bytes_ - moved, 2 * kBlock);
}

TEST_F(BegunAheadTest, TheEndOfASweepPrefetchesTheNextOne) {
  make_larger_than_cache();
  for (int i = 0; i < 2; ++i) sweep(0, content_.size());
  const uint64_t moved = moved_bytes_;
  for (int i = 0; i < 3; ++i) sweep(0, content_.size());
  EXPECT_EQ(moved_bytes_, moved) << "the devices work while the engine does between sweeps";
}

TEST_F(BegunAheadTest, SkippedRangesAreNotPrefetched) {
  cache_->set_budget(64 * kMiB);
  const auto skipping_sweep = [&] {
    sweep(0, 3 * kBlock);
    sweep(8 * kBlock, 12 * kBlock);
  };
  // by then the first sweep's predictions have expired
  for (int i = 0; i < 5; ++i) skipping_sweep();
  const uint64_t wasted = cache_->stats().prefetched.unused;
  const uint64_t moved = moved_bytes_;
  for (int i = 0; i < 8; ++i) skipping_sweep();
  EXPECT_EQ(moved_bytes_, moved);
  EXPECT_EQ(cache_->stats().prefetched.unused, wasted);
}

TEST_F(BegunAheadTest, AStrideIsPrefetched) {
  for (uint64_t at = 0; at < 96; at += 8) {
    EXPECT_TRUE(cache_->read(file(), {at * kMiB, 2 * kMiB}, buffer_.data(), *this));
    EXPECT_EQ(content_.compare(at * kMiB, 2 * kMiB, buffer_[0].bytes, 2 * kMiB), 0);
  }
  EXPECT_EQ(moved_bytes_, 8 * kMiB) << "four reads make a stride";
  EXPECT_EQ(started_bytes_, 16 * kMiB);
}

// Two blocks in a row, then elsewhere: these reads look like streams but never are.
TEST_F(BegunAheadTest, WrongGuessesPausePrefetch) {
  // The file's id decides which frames are evicted: with some ids prefetch starts a tenth more
  // often.
  constexpr Uuid kId{.bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
  make_file({.stripe_depth_bytes = 2 * kMiB, .device_count = 2, .first_device = 0}, 320 * kMiB,
            kId);
  std::mt19937_64 random(17);
  uint64_t asked = 0;
  for (int i = 0; i < 300; ++i) {
    const uint64_t at = random() % 310 * kMiB;
    for (const uint64_t offset : {at, at + 2 * kMiB}) {
      ASSERT_TRUE(cache_->read(file(), {offset, 2 * kMiB}, buffer_.data(), *this));
      asked += 2 * kMiB;
    }
  }
  EXPECT_LE(started_bytes_, asked / 7);
}

TEST_F(BegunAheadTest, DisabledPrefetchStartsNothing) {
  restart({.budget_bytes = 64 * kMiB, .reads_ahead = false});
  for (int i = 0; i < 3; ++i) sweep(0, content_.size());
  cache_->will_need(file(), {0, kBlock}, *this);
  EXPECT_EQ(started_count_, 0u);
  EXPECT_LT(moved_bytes_, 3 * content_.size()) << "but it keeps";
}

TEST_F(BegunAheadTest, WithoutKeepingOnlyPrefetchedFramesHit) {
  restart({.budget_bytes = 128 * kMiB, .keeps = false});
  for (int i = 0; i < 3; ++i) sweep(0, content_.size());
  EXPECT_GE(moved_bytes_ + started_bytes_, 3 * content_.size());
  EXPECT_EQ(moved_bytes_, 2 * kBlock + kBlock) << "the first two reads, and the first turn";
  EXPECT_EQ(cache_->stats().frames.resident_bytes, 0u);
}

TEST_F(BegunAheadTest, AHintIsPrefetched) {
  cache_->will_need(file(), {40 * kMiB, 20 * kMiB}, *this);
  EXPECT_EQ(started_bytes_, 20 * kMiB);
  sweep(40 * kMiB, 56 * kMiB);
  EXPECT_EQ(moved_bytes_, 0u);
  EXPECT_EQ(cache_->stats().prefetched.unused, 0u);
}

TEST_F(BegunAheadTest, ALongHintIsPrefetchedAsItIsRead) {
  cache_->will_need(file(), {0, content_.size()}, *this);
  EXPECT_LE(started_bytes_, 32 * kMiB);
  sweep(0, content_.size());
  EXPECT_EQ(moved_bytes_, 0u);
  EXPECT_EQ(started_bytes_, content_.size());
}

TEST_F(BegunAheadTest, HintsAreFollowedInTheirOrder) {
  const std::vector<uint64_t> places = {64, 8, 80, 32};
  for (const uint64_t at : places) cache_->will_need(file(), {at * kMiB, kBlock}, *this);
  for (const uint64_t at : places) sweep(at * kMiB, at * kMiB + kBlock);
  EXPECT_EQ(moved_bytes_, 0u);
  EXPECT_EQ(started_bytes_, places.size() * kBlock);
}

TEST_F(BegunAheadTest, AnUnusedHintExpires) {
  cache_->will_need(file(), {80 * kMiB, kBlock}, *this);
  while (ahead_.poll()) {
  }
  for (int i = 0; i < 40; ++i) sweep(0, 2 * kBlock);
  EXPECT_EQ(cache_->stats().prefetched.unused, kBlock / kMiB);
  EXPECT_LE(started_bytes_, 3 * kBlock) << "once, and the sweep itself";
}

TEST_F(BegunAheadTest, AHintBeyondTheFileIsIgnored) {
  cache_->will_need(file(), {content_.size(), kBlock}, *this);
  cache_->will_need(file(), {UINT64_MAX - kBlock, kBlock}, *this);
  EXPECT_EQ(started_count_, 0u);
}

TEST_F(BegunAheadTest, PrefetchMemoryIsPartOfTheBudget) {
  start(64 * kMiB);
  const auto all_bytes = [&] {
    const ExtentCacheStats stats = cache_->stats();
    return stats.frames.resident_bytes + stats.prefetch_bytes;
  };
  idle_ = 0;
  for (int round = 0; round < 4; ++round) {
    for (uint64_t at = 0; at < content_.size(); at += 4 * kMiB) read({at, 4 * kMiB});
  }
  EXPECT_GT(all_bytes(), 48 * kMiB) << "all of it, while nothing is begun";
  idle_ = ~DeviceSet{0};
  for (int round = 0; round < 4; ++round) {
    cache_->will_need(file(2), {0, content_.size()}, *this);
    EXPECT_LE(all_bytes(), 64 * kMiB);
    sweep(0, content_.size());
    EXPECT_LE(all_bytes(), 64 * kMiB);
  }
  EXPECT_GE(cache_->stats().prefetch_bytes, 8 * kMiB);
  EXPECT_GT(all_bytes(), 56 * kMiB);
}

TEST_F(BegunAheadTest, NoPrefetchWhileOtherReadsUseTheDevices) {
  idle_ = 0;
  sweep(0, content_.size());
  EXPECT_EQ(started_count_, 0u);
}

TEST_F(BegunAheadTest, PrefetchesOnIdleDevicesOnly) {
  idle_ = 0b10;
  sweep(0, content_.size());
  EXPECT_EQ(started_on_, 0b10u);
  EXPECT_GE(started_bytes_, content_.size() / 2 - 2 * kBlock) << "of its half";
  EXPECT_EQ(moved_bytes_ + started_bytes_, content_.size());
}

TEST_F(BegunAheadTest, AFrameOfTwoDevicesWaitsForBoth) {
  make_file({.stripe_depth_bytes = 3 * kMiB / 2, .device_count = 2, .first_device = 0}, 96 * kMiB);
  idle_ = 0b01;
  sweep(0, content_.size());
  EXPECT_EQ(started_on_, 0b01u);
  EXPECT_EQ(moved_bytes_ + started_bytes_, content_.size());
}

TEST_F(BegunAheadTest, TheFirstIdleDevicePrefetchesMeanwhile) {
  idle_ = 0;
  idle_when_done_ = true;
  sweep(0, 2 * kBlock);
  EXPECT_EQ(moved_bytes_, 2 * kBlock) << "the second one makes it a stream";
  EXPECT_EQ(started_on_, 0b11u);
  sweep(2 * kBlock, content_.size());
  EXPECT_LT(moved_bytes_, content_.size() / 2);
  EXPECT_EQ(moved_bytes_ + started_bytes_, content_.size());
  EXPECT_EQ(cache_->stats().prefetched.unused, 0u);
}

TEST_F(BegunAheadTest, RandomReadsPrefetchNothing) {
  for (const uint64_t at : {50u, 20u, 90u, 0u, 70u, 35u}) read({at * kMiB, kMiB});
  EXPECT_EQ(started_count_, 0u);
}

TEST_F(BegunAheadTest, SmallReadsHitPrefetchedFrames) {
  std::string got;
  for (uint64_t at = 0; at < content_.size(); at += 100'000) {
    const std::string bytes = read({at, 100'000});
    got += bytes == "declined" ? expected({at, 100'000}) : bytes;
  }
  EXPECT_TRUE(got == content_);
  EXPECT_LE(moved_bytes_, 3 * kMiB);
  EXPECT_LE(moved_bytes_ + started_bytes_, content_.size() + kMiB);
}

TEST_F(BegunAheadTest, AFailedPrefetchIsReadOtherwise) {
  sweep(0, 3 * kBlock);
  while (ahead_.poll()) {
  }
  const std::string part = device(1) + "/" + PartName(layout_.file_id).c_str();
  std::filesystem::resize_file(part, 20 * kMiB);
  error_ = EIO;
  for (uint64_t at = 3 * kBlock; at < 7 * kBlock; at += kBlock) {
    const bool there = at + kBlock <= 40 * kMiB;
    EXPECT_EQ(cache_->read(file(), {at, kBlock}, buffer_.data(), *this).has_value(), there) << at;
  }
}

TEST_F(BegunAheadTest, AnotherGenerationMissesPrefetchedFrames) {
  sweep(0, 3 * kBlock);
  const uint64_t before = moved_bytes_;
  ASSERT_TRUE(cache_->read(file(2), {3 * kBlock, kBlock}, buffer_.data(), *this));
  EXPECT_EQ(moved_bytes_, before + kBlock);
}

TEST_F(ExtentCacheTest, ADeviceErrorIsDeclinedAndNotCached) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 8 * kMiB);
  start(32 * kMiB);
  error_ = EIO;
  EXPECT_EQ(read({0, 4 * kMiB}), "declined");
  error_ = 0;
  EXPECT_TRUE(read({0, 4 * kMiB}) == expected({0, 4 * kMiB}));
}

TEST_F(ExtentCacheTest, AnotherGenerationIsReadAnew) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 4 * kMiB);
  start(32 * kMiB);
  read({0, 4 * kMiB});
  const uint64_t before = moved_bytes_;
  read({0, 4 * kMiB});
  EXPECT_EQ(moved_bytes_, before);
  std::string bytes(4 * kMiB, '\0');
  ASSERT_TRUE(cache_->read(file(2), {0, 4 * kMiB}, bytes.data(), *this));
  EXPECT_EQ(moved_bytes_, before + 4 * kMiB);
}

// ---- packing: cached frames take only the bits that they need

class PackedExtentTest : public ExtentCacheTest {
 protected:
  static constexpr uint64_t kBlock = 8 * kMiB;
  static constexpr uint64_t kEdges = 0x0007ffff'0007ffff;  // pairs of 19 bits
  void make(uint64_t mask, Uuid id = Uuid::random()) {
    content_mask_ = mask;
    make_file({.stripe_depth_bytes = 2 * kMiB, .device_count = 2, .first_device = 0}, 96 * kMiB,
              id);
  }
  // The share of the file that came from the devices.
  double sweep() {
    const uint64_t before = moved_bytes_;
    for (uint64_t at = 0; at < content_.size(); at += kBlock) {
      EXPECT_TRUE(cache_->read(file(), {at, kBlock}, buffer_.data(), *this));
      EXPECT_EQ(content_.compare(at, kBlock, buffer_[0].bytes, kBlock), 0) << at;
    }
    return static_cast<double>(moved_bytes_ - before) / static_cast<double>(content_.size());
  }
  double steady_sweep() {
    for (int i = 0; i < 4; ++i) sweep();
    return sweep();
  }

  std::vector<Page> buffer_{kBlock / sizeof(Page)};
};

TEST_F(PackedExtentTest, PackedEdgesBeyondTheBudgetAllFit) {
  make(kEdges);
  start(64 * kMiB);
  EXPECT_LE(steady_sweep(), 0.01);
  EXPECT_LE(cache_->stats().frames.resident_bytes, 64 * kMiB);
}

TEST_F(PackedExtentTest, WithoutPackingAThirdMisses) {
  make(kEdges);
  restart({.budget_bytes = 64 * kMiB, .packs = false});
  EXPECT_GE(steady_sweep(), 0.33);
}

TEST_F(PackedExtentTest, UnpackableFilesAreCachedUnpacked) {
  make(UINT64_MAX);
  start(64 * kMiB);
  const double packs = steady_sweep();
  restart({.budget_bytes = 64 * kMiB, .packs = false});
  EXPECT_EQ(packs, steady_sweep());
}

TEST_F(PackedExtentTest, AnUnpackableFileAfterAPackedOneKeepsTheBudget) {
  make(kEdges);
  start(64 * kMiB);
  sweep();
  make(UINT64_MAX);
  // A third does not fit. In each set fewer frames have memory, and one of them is on probation.
  EXPECT_LE(steady_sweep(), 0.65);
  EXPECT_LE(cache_->stats().frames.resident_bytes, 64 * kMiB + 4 * kMiB);
}

TEST_F(PackedExtentTest, PiecesOfPackedFramesAreRight) {
  make(kEdges);
  start(96 * kMiB);
  sweep();
  sweep();
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const ByteRange range{random() % content_.size(), 1 + random() % (3 * kMiB)};
    const std::string got = read(range);
    if (got == "declined") continue;
    ASSERT_TRUE(got == expected(range)) << range.offset;
  }
}

TEST_F(PackedExtentTest, ReadsAreRightWhilePackingBegins) {
  make(kEdges);
  for (int i = 0; i < 5; ++i) {
    start(48 * kMiB);
    std::atomic<uint64_t> next{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        std::vector<Page> buffer(kBlock / sizeof(Page));
        for (uint64_t at; (at = next.fetch_add(kBlock)) < 3 * content_.size();) {
          const uint64_t offset = at % content_.size();
          ASSERT_TRUE(cache_->read(file(), {offset, kBlock}, buffer.data(), *this));
          ASSERT_EQ(content_.compare(offset, kBlock, buffer[0].bytes, kBlock), 0) << offset;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(cache_->stats().frames.resident_bytes, 48 * kMiB + 3 * kMiB);
  }
}

TEST_F(PackedExtentTest, PauseFreesAllMemory) {
  make(kEdges);
  start(64 * kMiB);
  sweep();
  cache_->pause(*this);
  EXPECT_EQ(cache_->stats().frames.resident_bytes, 0u);
  EXPECT_GE(sweep(), 1.0);
  cache_->resume();
  EXPECT_LE(steady_sweep(), 0.01);
}

TEST_F(ExtentCacheTest, ASmallerBudgetFreesMemory) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 32 * kMiB);
  start(32 * kMiB);
  const auto read_all = [&] {
    std::string all;
    for (uint64_t at = 0; at < 32 * kMiB; at += 4 * kMiB) all += read({at, 4 * kMiB});
    return all;
  };
  EXPECT_TRUE(read_all() == content_);
  EXPECT_GT(cache_->stats().frames.resident_bytes, 24 * kMiB);
  cache_->set_budget(16 * kMiB);
  EXPECT_LE(cache_->stats().frames.resident_bytes, 16 * kMiB);
  EXPECT_TRUE(read_all() == content_);
  EXPECT_LE(cache_->stats().frames.resident_bytes, 16 * kMiB);
}

TEST_F(ExtentCacheTest, AGivenBudgetShrinksWhenMemoryIsShort) {
  const MemoryFiles memory;
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 32 * kMiB);
  restart({.budget_bytes = 32 * kMiB, .memory_root = memory.root()});
  const auto budget_after_sweep = [&](uint64_t left_bytes) {
    memory.set_available(left_bytes);
    for (uint64_t at = 0; at < 32 * kMiB; at += 4 * kMiB) read({at, 4 * kMiB});
    return cache_->stats().budget_bytes;
  };
  EXPECT_EQ(budget_after_sweep(64 * kMiB), 32 * kMiB);
  memory.set_available(22 * kMiB);
  cache_->adjust_budget();
  EXPECT_EQ(cache_->stats().budget_bytes, 22 * kMiB);
  EXPECT_LE(cache_->stats().frames.resident_bytes, 22 * kMiB);
  memory.set_available(32 * kMiB);  // with the freed memory
  cache_->set_budget(32 * kMiB);
  EXPECT_LE(cache_->stats().budget_bytes, 22 * kMiB) << "which is not there";
  EXPECT_EQ(budget_after_sweep(64 * kMiB), 32 * kMiB);
}

TEST_F(ExtentCacheTest, AReclaimableGivenBudgetDoesNotShrink) {
  const MemoryFiles memory;
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 32 * kMiB);
  restart({.budget_bytes = 32 * kMiB, .reclaimable = true, .memory_root = memory.root()});
  memory.set_available(0);
  for (uint64_t at = 0; at < 32 * kMiB; at += 4 * kMiB) read({at, 4 * kMiB});
  EXPECT_EQ(cache_->stats().budget_bytes, 32 * kMiB);
}

TEST_F(ExtentCacheTest, BesideThePageCacheTheBudgetIsANonReclaimableOne) {
  MemoryFiles memory;
  memory.set_available(512 * kMiB);
  restart({.reclaimable = true, .memory_root = memory.root()});
  EXPECT_EQ(cache_->stats().budget_bytes, 256 * kMiB);
  cache_->set_beside_page_cache(true);
  EXPECT_LE(cache_->stats().budget_bytes, 192 * kMiB);
  memory.set_available(128 * kMiB);
  cache_->adjust_budget();
  EXPECT_EQ(cache_->stats().budget_bytes, 0u);
  memory.set_available(512 * kMiB);
  cache_->set_beside_page_cache(false);
  EXPECT_EQ(cache_->stats().budget_bytes, 256 * kMiB) << "at once, as at first";
}

// A program's large read as a mount receives it: in requests of half a frame.
class PartsTest : public ExtentCacheTest, public ::testing::WithParamInterface<uint64_t> {
 protected:
  void SetUp() override {
    ExtentCacheTest::SetUp();
    make_file({.stripe_depth_bytes = 2 * kMiB, .device_count = 2, .first_device = 0}, 96 * kMiB);
  }
  // Bytes that came from the devices.
  uint64_t sweep(uint64_t generation = 1) {
    const uint64_t before = moved_bytes_;
    const uint64_t length = GetParam();
    std::vector<Page> buffer(length / sizeof(Page));
    for (uint64_t at = 0; at < content_.size(); at += length) {
      EXPECT_TRUE(cache_->read_part(file(generation), {at, length}, buffer.data(), *this));
      EXPECT_EQ(content_.compare(at, length, buffer[0].bytes, length), 0);
    }
    return moved_bytes_ - before;
  }
};

TEST_P(PartsTest, TwiceTheCacheInPartsHitsNearlyHalf) {
  start(48 * kMiB);
  EXPECT_EQ(sweep(), content_.size());
  uint64_t moved = 0;
  for (int i = 0; i < 4; ++i) moved += sweep();
  EXPECT_LE(moved, 4 * content_.size() * 55 / 100);
}

// Rows are read once, columns repeatedly: columns get the frames.
TEST_P(PartsTest, ReusedFramesReplaceUnusedOnes) {
  start(16 * kMiB);
  sweep();
  EXPECT_EQ(sweep(2), content_.size()) << "nothing of it is worth a frame yet";
  EXPECT_EQ(sweep(2), content_.size());
  EXPECT_LE(sweep(2), content_.size() - 14 * kMiB);
}

INSTANTIATE_TEST_SUITE_P(Requests, PartsTest, ::testing::Values(kMiB / 2, kMiB, 3 * kMiB / 2));

TEST_F(ExtentCacheTest, PartsBesideOtherReadsAreRight) {
  make_file({.stripe_depth_bytes = 3 * kMiB / 2, .device_count = 3, .first_device = 1},
            40 * kMiB + 12345);
  start(16 * kMiB);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<Page> buffer(3 * kMiB / sizeof(Page));
      for (int i = 0; i < 200; ++i) {
        const ByteRange range{random() % content_.size() / kBlockSize * kBlockSize,
                              (1 + random() % 512) * kBlockSize};
        const std::string_view whole = expected(range);
        const auto got = t % 2 == 0 ? cache_->read_part(file(), range, buffer.data(), *this)
                                    : cache_->read(file(), range, buffer.data(), *this);
        if (!got) continue;
        ASSERT_EQ(*got, whole.size());
        ASSERT_EQ(whole.compare(0, whole.size(), buffer[0].bytes, whole.size()), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ExtentCacheTest, AFailedPartIsNotCached) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 8 * kMiB);
  start(32 * kMiB);
  std::vector<Page> buffer(kMiB / sizeof(Page));
  error_ = EIO;
  EXPECT_FALSE(cache_->read_part(file(), {0, kMiB / 2}, buffer.data(), *this));
  error_ = 0;
  EXPECT_TRUE(cache_->read_part(file(), {0, kMiB / 2}, buffer.data(), *this));
  EXPECT_EQ(content_.compare(0, kMiB / 2, buffer[0].bytes, kMiB / 2), 0);
}

// The whole read would need frames.
TEST_F(ExtentCacheTest, LargeUnalignedReadsAreDeclined) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 32 * kMiB);
  start(64 * kMiB);
  std::vector<Page> pages(16 * kMiB / sizeof(Page) + 1);
  EXPECT_FALSE(cache_->read(file(), {0, 16 * kMiB}, pages[0].bytes + 16, *this));
  EXPECT_EQ(io_count_, 0u);
}

TEST_F(ExtentCacheTest, TooLittleMemoryDeclinesAll) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 8 * kMiB);
  cache_ = std::make_unique<ExtentCache>();
  EXPECT_FALSE(cache_->start({.budget_bytes = kMiB}));
  EXPECT_EQ(read({0, 4 * kMiB}), "declined");
}

}  // namespace
}  // namespace graphlane
