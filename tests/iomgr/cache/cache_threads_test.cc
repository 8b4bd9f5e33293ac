// The cache with many threads: contents, errors and counts hold in any order. The thread sanitizer
// runs this file too.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/iomgr/cache/cache_fixture.h"

namespace graphlane {
namespace {

using Kind = Reservation::Kind;

template <class Body>
void on_threads(int count, Body body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([=] { body(t); });
  for (std::thread& thread : threads) thread.join();
}

class CacheThreadsTest : public ::testing::TestWithParam<CachePolicy> {};

struct Tally {
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> fills{0};
  std::atomic<uint64_t> failures{0};
  std::atomic<uint64_t> waits{0};
  std::atomic<uint64_t> rejected{0};

  void check(const FrameKey& key, const Pin& pin) {
    if (pin.bytes().size() != 4096 || !Stamp::of(key).is_in(pin.bytes())) ++wrong;
  }
};

// Reads as a caller does. Every `fail_every`-th fill fails.
void read_frame(FrameCache& cache, const FrameKey& key, uint64_t fail_every, Tally& tally) {
  if (const Pin pin = cache.find(key)) {
    ++tally.hits;
    return tally.check(key, pin);
  }
  Reservation reservation = cache.reserve(key);
  switch (reservation.kind) {
    case Kind::kHit: ++tally.hits; return tally.check(key, reservation.pin);
    case Kind::kFill:
      if (++tally.fills % fail_every == 0) {
        ++tally.failures;
        return reservation.fill.abandon(EIO);
      }
      Stamp::of(key).write(reservation.fill.bytes());
      return tally.check(key, reservation.fill.publish(4096));
    case Kind::kWait: {
      ++tally.waits;
      const auto pin = reservation.wait.wait();
      if (pin) return tally.check(key, *pin);
      if (pin.error().code != EIO) ++tally.wrong;
      return;
    }
    case Kind::kBypass: ++tally.rejected;
  }
}

// Few frames and skewed keys, so that the threads collide.
FrameKey random_key(std::mt19937_64& random) {
  return key_of(random() % 2, std::min(random() % 100, random() % 100));
}

TEST_P(CacheThreadsTest, ReadTheBytesOfTheirKeys) {
  TestCache test(48, GetParam());
  Tally tally;
  on_threads(6, [&](int t) {
    std::mt19937_64 random(t);
    for (int i = 0; i < 20000; ++i) read_frame(test.cache, random_key(random), 10, tally);
  });
  EXPECT_EQ(tally.wrong, 0u);
  const CacheStats stats = test.cache.stats();
  EXPECT_EQ(stats.hits, tally.hits);
  EXPECT_EQ(stats.fills, tally.fills);
  EXPECT_EQ(stats.failures, tally.failures);
  EXPECT_EQ(stats.waits, tally.waits);
  EXPECT_EQ(stats.rejected, tally.rejected);
  EXPECT_EQ(stats.hits + stats.misses(), 6u * 20000);
  EXPECT_LE(stats.resident_bytes, 48u * 4096);
}

TEST_P(CacheThreadsTest, ReadWhileTheBudgetMovesAndFilesAreDropped) {
  TestCache test(48, GetParam());
  Tally tally;
  std::atomic<int> running{4};
  std::thread owner([&] {
    std::mt19937_64 random(99);
    while (running > 0) {
      EXPECT_TRUE(test.cache.resize(random() % 49 * 4096));
      // The readers pin at most a frame each.
      test.cache.drop(key_of(random() % 2, 0).file_id);
      EXPECT_LE(test.cache.stats().resident_bytes, 48u * 4096);
    }
  });
  on_threads(4, [&](int t) {
    std::mt19937_64 random(t);
    for (int i = 0; i < 10000; ++i) read_frame(test.cache, random_key(random), 10, tally);
    --running;
  });
  owner.join();
  EXPECT_EQ(tally.wrong, 0u);
  ASSERT_TRUE(test.cache.resize(5 * 4096));
  EXPECT_LE(test.cache.stats().resident_bytes, 5u * 4096);
  EXPECT_LE(test.memory.resident_pages(), 5u);
  ASSERT_TRUE(test.cache.resize(0));
  EXPECT_EQ(test.cache.stats().resident_bytes, 0u);
}

// A file's content is a number that only grows; the file is dropped after each change. No reader
// may see a number that was replaced before its request.
TEST_P(CacheThreadsTest, NeverHitFramesDroppedBefore) {
  TestCache test(16, GetParam());
  const FrameKey key = key_of(1, 3);
  std::atomic<uint64_t> device{0};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> stale{0};
  std::thread writer([&] {
    for (int i = 0; i < 5000; ++i) {
      ++device;
      test.cache.drop(key.file_id);
      if (i % 64 == 0) std::this_thread::yield();
    }
    stop = true;
  });
  on_threads(3, [&](int) {
    while (!stop) {
      const uint64_t before = device;  // may not be dropped yet: one less is right too
      const auto look = [&](const Pin& pin) {
        uint64_t seen = 0;
        std::memcpy(&seen, pin.bytes().data(), sizeof seen);
        if (seen + 1 < before) ++stale;
      };
      Reservation reservation = test.cache.reserve(key);
      if (reservation.kind == Kind::kHit) look(reservation.pin);
      if (reservation.kind == Kind::kFill) {
        const uint64_t now = device;
        std::memcpy(reservation.fill.bytes().data(), &now, sizeof now);
        look(reservation.fill.publish(4096));
      }
      if (reservation.kind == Kind::kWait) look(*reservation.wait.wait());
    }
  });
  writer.join();
  EXPECT_EQ(stale, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, CacheThreadsTest, all_policies(), policy_test_name);

TEST(CacheThreadsTest, OneThreadFillsAndTheOthersWait) {
  TestCache test(16, CachePolicy::kScanResistant);
  for (uint64_t round = 0; round < 200; ++round) {
    const FrameKey key = key_of(1, round);
    const bool fails = round % 3 == 0;
    Reservation fill = test.cache.reserve(key);
    ASSERT_EQ(fill.kind, Kind::kFill);
    std::atomic<int> waiting{0};
    std::atomic<int> wrong{0};
    std::thread filler([&] {
      while (waiting < 4) std::this_thread::yield();
      if (fails) return fill.fill.abandon(ENODEV);
      Stamp::of(key).write(fill.fill.bytes());
      fill.fill.publish(4096);
    });
    on_threads(4, [&](int) {
      Reservation reservation = test.cache.reserve(key);
      if (reservation.kind != Kind::kWait) ++wrong;
      ++waiting;
      const auto pin = reservation.wait.wait();
      if (fails && (pin || pin.error().code != ENODEV)) ++wrong;
      if (!fails && (!pin || !Stamp::of(key).is_in(pin->bytes()))) ++wrong;
    });
    filler.join();
    ASSERT_EQ(wrong, 0) << round;
  }
}

// The lock alone: only its holder changes a counter.
TEST(FutexLockTest, TheLockIsExclusive) {
  FutexLock lock;
  uint64_t count = 0;
  on_threads(4, [&](int) {
    for (int i = 0; i < 20000; ++i) {
      if (i % 2 == 0) {
        lock.lock();
      } else if (!lock.lock_patiently()) {
        continue;
      }
      ++count;
      if (i % 256 == 0) std::this_thread::yield();  // so that others have to sleep
      lock.unlock();
    }
  });
  EXPECT_GE(count, 4u * 10000);
}

// A signal handler may have interrupted the holder.
TEST(FutexLockTest, GivesUpOnAHolderThatCannotRun) {
  FutexLock lock;
  lock.lock();
  EXPECT_FALSE(lock.lock_patiently());
  lock.unlock();
  EXPECT_TRUE(lock.lock_patiently());
  lock.unlock();
}

}  // namespace
}  // namespace graphlane
