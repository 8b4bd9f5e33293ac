// The cache with one thread: hits, drops and reclaimed memory. cache_policy_test.cc tests policies
// on traces, cache_threads_test.cc many threads.
#include "iomgr/cache/cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/iomgr/cache/cache_fixture.h"

namespace graphlane {
namespace {

using Kind = Reservation::Kind;

TEST(CacheTest, RejectsInvalidShapes) {
  const Mapping memory(1 << 20);
  const Mapping metadata(1 << 20);
  FrameCache cache;
  const auto code = [&](uint64_t frame_bytes, std::span<std::byte> frames,
                        std::span<std::byte> words) {
    const CacheOptions options{.frame_bytes = frame_bytes, .policy = {}, .budget_bytes = 0};
    const auto done = cache.init(options, frames, words);
    return done ? 0 : done.error().code;
  };
  EXPECT_EQ(code(0, memory.bytes(), metadata.bytes()), EINVAL);
  EXPECT_EQ(code(5000, memory.bytes(), metadata.bytes()), EINVAL);
  EXPECT_EQ(code(kFrameBytesMax * 2, memory.bytes(), metadata.bytes()), EINVAL);
  EXPECT_EQ(code(4096, memory.bytes().first(4095), metadata.bytes()), EINVAL);
  EXPECT_EQ(code(4096, memory.bytes().subspan(64), metadata.bytes()), EINVAL);
  EXPECT_EQ(code(4096, memory.bytes(), metadata.bytes().first(20000)), EINVAL);
  EXPECT_EQ(code(4096, memory.bytes(), metadata.bytes().subspan(8)), EINVAL);
  EXPECT_EQ(code(4096, memory.bytes(), metadata.bytes()), 0);
  EXPECT_EQ(cache.frame_count(), 256u);
}

TEST(CacheTest, HitsReturnPublishedBytes) {
  TestCache test(64, CachePolicy::kLru);
  const FrameKey key = key_of(1, 7);
  EXPECT_FALSE(test.cache.find(key));
  Reservation reservation = test.cache.reserve(key);
  ASSERT_EQ(reservation.kind, Kind::kFill);
  EXPECT_FALSE(test.cache.find(key));
  EXPECT_EQ(reservation.fill.bytes().size(), 4096u);
  Stamp::of(key).write(reservation.fill.bytes().first(100));
  const uint32_t frame = reservation.fill.frame();
  const Pin filled = reservation.fill.publish(100);
  const Pin found = test.cache.find(key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found.frame(), frame);
  EXPECT_EQ(found.bytes().data(), test.memory.bytes().data() + frame * 4096);
  EXPECT_EQ(found.bytes().size(), 100u);
  EXPECT_TRUE(Stamp::of(key).is_in(found.bytes()));
  EXPECT_TRUE(found.intact());
  EXPECT_EQ(test.cache.reserve(key).kind, Kind::kHit);
  const CacheStats stats = test.cache.stats();
  EXPECT_EQ(stats.hits, 2u);
  EXPECT_EQ(stats.fills, 1u);
  EXPECT_EQ(stats.misses(), 1u);
  EXPECT_EQ(stats.resident_bytes, 4096u);
}

TEST(CacheTest, TellsKeysApart) {
  TestCache test(64, CachePolicy::kLru);
  EXPECT_FALSE(test.access(key_of(1, 7, 3)));
  EXPECT_FALSE(test.cache.find(key_of(1, 8, 3)));
  EXPECT_FALSE(test.cache.find(key_of(2, 7, 3)));
  EXPECT_FALSE(test.cache.find(key_of(1, 7, 4)));
  EXPECT_FALSE(test.cache.find(key_of(1, 7 + (uint64_t{1} << 32), 3)));
  EXPECT_TRUE(test.cache.find(key_of(1, 7, 3)));
}

// There are more keys than a tag's 16 bits tell apart.
TEST(CacheTest, TellsKeysWithEqualTagsApart) {
  TestCache test(16, CachePolicy::kLru);
  test.access(key_of(0, 0));
  for (uint64_t i = 1; i < 300'000; ++i) {
    ASSERT_FALSE(test.cache.find(key_of(i, 0))) << i;
    ASSERT_FALSE(test.cache.find(key_of(0, i))) << i;
    ASSERT_FALSE(test.cache.find(key_of(0, 0, i))) << i;
  }
}

TEST(CacheTest, FramesOfOlderGenerationsAreEvictedFirst) {
  TestCache test(16, CachePolicy::kLru);
  for (uint64_t i = 0; i < 16; ++i) test.access(key_of(1, i));
  test.access(key_of(1, 15, 1));
  EXPECT_EQ(test.cache.stats().evictions, 0u);
  EXPECT_FALSE(test.cache.find(key_of(1, 15)));
  for (uint64_t i = 0; i < 15; ++i) EXPECT_TRUE(test.cache.find(key_of(1, i))) << i;
}

TEST(CacheTest, APinnedFrameIsNotEvicted) {
  TestCache test(16, CachePolicy::kLru);
  test.access(key_of(1, 0));
  const Pin pin = test.cache.find(key_of(1, 0));
  for (uint64_t i = 1; i < 100; ++i) test.access(key_of(1, i));
  EXPECT_TRUE(Stamp::of(key_of(1, 0)).is_in(pin.bytes()));
  EXPECT_TRUE(test.cache.find(key_of(1, 0)));
}

TEST(CacheTest, BypassesWhenAllFramesArePinned) {
  TestCache test(8, CachePolicy::kScanResistant);
  std::vector<Reservation> fills;
  for (uint64_t i = 0; i < 8; ++i) fills.push_back(test.cache.reserve(key_of(1, i)));
  EXPECT_EQ(test.cache.reserve(key_of(1, 8)).kind, Kind::kBypass);
  const Pin pin = fills[0].fill.publish(4096);
  EXPECT_EQ(test.cache.reserve(key_of(1, 8)).kind, Kind::kBypass);
  EXPECT_EQ(test.cache.stats().rejected, 2u);
  fills.clear();  // abandons the others
  EXPECT_EQ(test.cache.stats().failures, 7u);
  EXPECT_EQ(test.cache.reserve(key_of(1, 8)).kind, Kind::kFill);
}

TEST(CacheTest, WaitersGetTheBytesOrTheError) {
  TestCache test(16, CachePolicy::kLru);
  Reservation fill = test.cache.reserve(key_of(1, 0));
  Reservation first = test.cache.reserve(key_of(1, 0));
  Reservation second = test.cache.reserve(key_of(1, 0));
  ASSERT_EQ(first.kind, Kind::kWait);
  ASSERT_EQ(second.kind, Kind::kWait);
  auto early = first.wait.wait(1'000'000);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ETIMEDOUT);
  EXPECT_TRUE(first.wait);  // and may go on waiting
  Stamp::of(key_of(1, 0)).write(fill.fill.bytes());
  fill.fill.publish(4096);
  const auto pin = first.wait.wait();
  ASSERT_TRUE(pin);
  EXPECT_TRUE(Stamp::of(key_of(1, 0)).is_in(pin->bytes()));

  Reservation failing = test.cache.reserve(key_of(1, 1));
  Reservation waiting = test.cache.reserve(key_of(1, 1));
  failing.fill.abandon(EIO);
  // The frame is free for the next fill while a waiter still has to fetch the error.
  Reservation again = test.cache.reserve(key_of(1, 1));
  EXPECT_EQ(again.kind, Kind::kFill);
  EXPECT_NE(again.fill.frame(), waiting.wait.frame());
  const auto failed = waiting.wait.wait();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, EIO);
}

TEST(CacheTest, ADestroyedFillIsAbandoned) {
  TestCache test(16, CachePolicy::kLru);
  Reservation waiting;
  {
    Reservation fill = test.cache.reserve(key_of(1, 0));
    waiting = test.cache.reserve(key_of(1, 0));
  }
  const auto failed = waiting.wait.wait();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ECANCELED);
  EXPECT_EQ(test.cache.reserve(key_of(1, 0)).kind, Kind::kFill);
}

TEST(CacheTest, DropInvalidatesAtOnceAlsoInFlightAndPinnedFrames) {
  TestCache test(64, CachePolicy::kScanResistant);
  for (uint64_t i = 0; i < 4; ++i) test.access(key_of(1, i));
  test.access(key_of(2, 0));
  const Pin pin = test.cache.find(key_of(1, 0));
  Reservation fill = test.cache.reserve(key_of(1, 9));
  Reservation waiting = test.cache.reserve(key_of(1, 9));
  test.cache.drop(key_of(1, 0).file_id);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_FALSE(test.cache.find(key_of(1, i))) << i;
  EXPECT_TRUE(test.cache.find(key_of(2, 0)));
  EXPECT_TRUE(Stamp::of(key_of(1, 0)).is_in(pin.bytes()));
  Reservation anew = test.cache.reserve(key_of(1, 9));
  ASSERT_EQ(anew.kind, Kind::kFill);
  Stamp::of(key_of(1, 9), 1).write(fill.fill.bytes());
  fill.fill.publish(4096);
  const auto old = waiting.wait.wait();  // asked before the drop
  ASSERT_TRUE(old);
  EXPECT_TRUE(Stamp::of(key_of(1, 9), 1).is_in(old->bytes()));
  EXPECT_FALSE(test.cache.find(key_of(1, 9)));
  Stamp::of(key_of(1, 9), 2).write(anew.fill.bytes());
  anew.fill.publish(4096);
  EXPECT_TRUE(Stamp::of(key_of(1, 9), 2).is_in(test.cache.find(key_of(1, 9)).bytes()));
}

TEST(CacheTest, DroppedFramesAreEvictedFirst) {
  TestCache test(16, CachePolicy::kLru);
  for (uint64_t i = 0; i < 8; ++i) test.access(key_of(1, i));
  for (uint64_t i = 0; i < 8; ++i) test.access(key_of(2, i));
  test.cache.drop(key_of(2, 0).file_id);
  for (uint64_t i = 0; i < 8; ++i) test.access(key_of(3, i));
  for (uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(test.cache.find(key_of(1, i))) << i;
  EXPECT_EQ(test.cache.stats().evictions, 0u);
}

// ---- the budget

TEST(CacheTest, ShrinksAndGrows) {
  TestCache test(1024, CachePolicy::kLru);
  for (uint64_t i = 0; i < 1024; ++i) test.access(key_of(1, i));
  EXPECT_EQ(test.memory.resident_pages(), 1024u);
  ASSERT_TRUE(test.cache.resize(300 * 4096 + 4095));
  EXPECT_EQ(test.memory.resident_pages(), 300u);
  EXPECT_EQ(test.cache.stats().resident_bytes, 300u * 4096);
  EXPECT_EQ(test.cache.stats().evictions, 724u);
  for (uint64_t i = 0; i < 3000; ++i) test.access(key_of(2, i));
  EXPECT_EQ(test.memory.resident_pages(), 300u);
  ASSERT_TRUE(test.cache.resize(0));
  EXPECT_EQ(test.memory.resident_pages(), 0u);
  EXPECT_EQ(test.cache.reserve(key_of(1, 1)).kind, Kind::kBypass);
  ASSERT_TRUE(test.cache.resize(uint64_t{1} << 40));
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 1024; ++i) EXPECT_EQ(test.access(key_of(1, i)), round == 1) << i;
  }
  EXPECT_EQ(test.cache.stats().resident_bytes, 1024u * 4096);
}

TEST(CacheTest, StartsWithinItsBudget) {
  const Mapping memory(1 << 20);
  const Mapping metadata(FrameCache::metadata_bytes(256));
  FrameCache cache;
  ASSERT_TRUE(cache.init({.frame_bytes = 4096, .policy = CachePolicy::kFifo, .budget_bytes = 40960},
                         memory.bytes(), metadata.bytes()));
  for (uint64_t i = 0; i < 1000; ++i) {
    Reservation reservation = cache.reserve(key_of(1, i));
    if (reservation.kind == Kind::kFill) reservation.fill.bytes()[0] = std::byte{1};
  }
  EXPECT_EQ(memory.resident_pages(), 10u);
}

TEST(CacheTest, ReclaimsPinnedFramesAtTheirLastUnpin) {
  TestCache test(16, CachePolicy::kScanResistant);
  for (uint64_t i = 0; i < 16; ++i) test.access(key_of(1, i));
  std::vector<Pin> pins;
  for (uint64_t i = 0; i < 6; ++i) pins.push_back(test.cache.find(key_of(1, i)));
  Pin second = test.cache.find(key_of(1, 0));
  ASSERT_TRUE(test.cache.resize(2 * 4096));
  EXPECT_EQ(test.cache.stats().resident_bytes, 6u * 4096);
  for (uint64_t i = 0; i < 6; ++i) EXPECT_TRUE(Stamp::of(key_of(1, i)).is_in(pins[i].bytes()));
  while (!pins.empty()) pins.pop_back();
  EXPECT_LE(test.cache.stats().resident_bytes, 3u * 4096);
  second.release();
  EXPECT_EQ(test.cache.stats().resident_bytes, 2u * 4096);
  EXPECT_EQ(test.memory.resident_pages(), 2u);
}

TEST(CacheTest, AShrunkBudgetLetsFillsInFlightEnd) {
  TestCache test(16, CachePolicy::kScanResistant);
  Reservation fill = test.cache.reserve(key_of(1, 0));
  Reservation waiting = test.cache.reserve(key_of(1, 0));
  ASSERT_TRUE(test.cache.resize(0));
  Stamp::of(key_of(1, 0)).write(fill.fill.bytes());
  EXPECT_TRUE(Stamp::of(key_of(1, 0)).is_in(fill.fill.publish(4096).bytes()));
  EXPECT_FALSE(test.cache.find(key_of(1, 0)));
  {
    const auto pin = waiting.wait.wait();
    ASSERT_TRUE(pin);
    EXPECT_TRUE(Stamp::of(key_of(1, 0)).is_in(pin->bytes()));
  }
  EXPECT_EQ(test.cache.stats().resident_bytes, 0u);
  EXPECT_EQ(test.memory.resident_pages(), 0u);
}

class CacheMemfdTest : public ::testing::Test {
 protected:
  void make(unsigned seals) {
    memfd_ = Fd(::memfd_create("frames", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_TRUE(memfd_);
    ASSERT_EQ(::ftruncate(memfd_.get(), 64 * 4096), 0);
    memory_ = std::make_unique<Mapping>(64 * 4096, MAP_SHARED, memfd_.get());
    ASSERT_EQ(::fcntl(memfd_.get(), F_ADD_SEALS, seals), 0);
    ASSERT_TRUE(cache_.init({}, memory_->bytes(), metadata_.bytes()));
    for (uint64_t i = 0; i < 64; ++i) {
      Reservation reservation = cache_.reserve(key_of(1, i));
      ASSERT_EQ(reservation.kind, Kind::kFill);
      Stamp::of(key_of(1, i)).write(reservation.fill.bytes());
      reservation.fill.publish(4096);
    }
  }
  int64_t memfd_blocks() const {
    struct stat st;
    EXPECT_EQ(::fstat(memfd_.get(), &st), 0);
    return st.st_blocks / 8;
  }

  Fd memfd_;
  std::unique_ptr<Mapping> memory_;
  Mapping metadata_{FrameCache::metadata_bytes(64)};
  FrameCache cache_;
};

TEST_F(CacheMemfdTest, ReclaimsTheMemoryOfASharedFile) {
  make(F_SEAL_SHRINK | F_SEAL_GROW);
  EXPECT_EQ(memfd_blocks(), 64);
  ASSERT_TRUE(cache_.resize(16 * 4096));
  EXPECT_EQ(memfd_blocks(), 16);
}

// An owner that wants its memory back must not use that seal.
TEST_F(CacheMemfdTest, ResizeFailsWhenASealKeepsTheMemory) {
#ifndef F_SEAL_FUTURE_WRITE
  GTEST_SKIP() << "not applicable: no F_SEAL_FUTURE_WRITE";
#else
  make(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
  const auto resized = cache_.resize(16 * 4096);
  ASSERT_FALSE(resized);
  EXPECT_EQ(resized.error().code, EPERM);
  EXPECT_EQ(cache_.stats().resident_bytes, 16u * 4096);
  for (uint64_t i = 0; i < 64; ++i) {
    const Pin pin = cache_.find(key_of(1, i));
    EXPECT_TRUE(!pin || Stamp::of(key_of(1, i)).is_in(pin.bytes())) << i;
  }
#endif
}

// ---- fork

TEST(CacheTest, AForkedChildStartsEmptyWithVoidPins) {
  TestCache test(16, CachePolicy::kLru);
  test.memory.wipe_on_fork();
  test.metadata.wipe_on_fork();
  for (uint64_t i = 0; i < 8; ++i) test.access(key_of(1, i));
  Pin pin = test.cache.find(key_of(1, 0));
  Reservation fill = test.cache.reserve(key_of(1, 9));
  Reservation waiting = test.cache.reserve(key_of(1, 9));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool good = !pin.intact() && !fill.fill.intact();
    pin.release();
    fill.fill.publish(4096);
    const auto waited = waiting.wait.wait();
    good = good && !waited && waited.error().code == ECANCELED;
    good = good && test.cache.stats().resident_bytes == 0 && !test.cache.find(key_of(1, 1));
    for (uint64_t i = 0; i < 32; ++i) good = good && test.access(key_of(1, i / 2)) == (i % 2 == 1);
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(pin.intact());
  EXPECT_TRUE(Stamp::of(key_of(1, 0)).is_in(pin.bytes()));
}

// ---- models

// LRU and FIFO of one set as a list: the first is evicted next.
class ListModel {
 public:
  ListModel(CachePolicy policy, size_t frame_count)
      : lru_(policy == CachePolicy::kLru), frame_count_(frame_count) {}
  bool access(uint64_t index) {
    const auto found = std::find(list_.begin(), list_.end(), index);
    if (found != list_.end()) {
      if (lru_) list_.splice(list_.end(), list_, found);
      return true;
    }
    if (frame_count_ == 0) return false;
    if (list_.size() == frame_count_) list_.pop_front();
    list_.push_back(index);
    return false;
  }
  void resize(size_t frame_count) {
    frame_count_ = frame_count;
    while (list_.size() > frame_count_) list_.pop_front();
  }

 private:
  const bool lru_;
  size_t frame_count_;
  std::list<uint64_t> list_;
};

class CacheListTest : public ::testing::TestWithParam<std::tuple<CachePolicy, uint64_t>> {};

TEST_P(CacheListTest, HitsAndMissesEqualTheListModel) {
  const auto [policy, frame_count] = GetParam();
  TestCache test(frame_count, policy);
  ListModel model(policy, frame_count);
  std::mt19937_64 random(frame_count);
  for (int step = 0; step < 20000; ++step) {
    if (random() % 500 == 0) {
      const uint64_t frames = random() % (frame_count + 1);
      ASSERT_TRUE(test.cache.resize(frames * 4096));
      model.resize(frames);
    }
    const uint64_t index = std::min(random() % 40, random() % 40);
    ASSERT_EQ(test.access(key_of(1, index)), model.access(index)) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(OneSet, CacheListTest,
                         ::testing::Combine(::testing::Values(CachePolicy::kLru,
                                                              CachePolicy::kFifo),
                                            ::testing::Values(1, 2, 7, 8, 15, 16)),
                         [](const auto& row) {
                           return std::string(name_of(std::get<0>(row.param))) + "_" +
                                  std::to_string(std::get<1>(row.param));
                         });

// Random operations, and the invariants of all policies and sizes: a hit returns the last published
// bytes of its key, whole. No key hits after its file was dropped, or in another generation. Pinned
// frames do not change. A frame being filled is waited for, not filled twice. Memory stays within
// the budget, except for pinned frames.
class RandomOperations {
 public:
  RandomOperations(CachePolicy policy, uint64_t frame_count, uint64_t seed)
      : test_(frame_count, policy), random_(seed), budget_(frame_count) {}

  void run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const uint64_t choice = random_() % 100;
      if (choice < 60) {
        look_up();
      } else if (choice < 78) {
        end_fill();
      } else if (choice < 96) {
        release_pin();
      } else if (choice < 97) {
        drop();
      } else if (choice < 98) {
        ++generation_[random_() % kFiles];
      } else if (choice < 99) {
        resize();
      }
      check_budget();
    }
    pins_.clear();
    fills_.clear();
    check_budget();
  }

 private:
  static constexpr uint64_t kFiles = 3;
  using Name = std::tuple<uint64_t, uint64_t, uint64_t>;  // file, index, generation
  struct Held {
    Stamp stamp;
    Pin pin;
  };
  struct Filling {
    Name name;
    uint64_t drops;
    Fill fill;
    std::vector<FrameWait> waits;
  };

  void look_up() {
    const uint64_t file = random_() % kFiles;
    const uint64_t index = std::min(random_() % 100, random_() % 100);
    const Name name{file, index, generation_[file]};
    const FrameKey key = key_of(file, index, generation_[file]);
    if (random_() % 2 == 0) {
      Pin pin = test_.cache.find(key);
      if (pin) check_found(name, std::move(pin));
      return;
    }
    Reservation reservation = test_.cache.reserve(key);
    Filling* filling = filling_of(name);
    switch (reservation.kind) {
      case Kind::kHit: return check_found(name, std::move(reservation.pin));
      case Kind::kBypass: return;
      case Kind::kFill:
        EXPECT_EQ(filling, nullptr);
        published_.erase(name);  // otherwise it would have been a hit
        fills_.push_back({name, drops_[file], std::move(reservation.fill), {}});
        return;
      case Kind::kWait:
        ASSERT_NE(filling, nullptr);
        EXPECT_EQ(filling->fill.frame(), reservation.wait.frame());
        filling->waits.push_back(std::move(reservation.wait));
    }
  }

  // Fills in flight for the name that were not dropped.
  Filling* filling_of(const Name& name) {
    for (Filling& filling : fills_) {
      if (filling.name == name && filling.drops == drops_[std::get<0>(name)]) return &filling;
    }
    return nullptr;
  }

  void check_found(const Name& name, Pin pin) {
    const auto published = published_.find(name);
    ASSERT_NE(published, published_.end());
    EXPECT_TRUE(published->second.is_in(pin.bytes()));
    if (random_() % 2 == 0) pins_.push_back({published->second, std::move(pin)});
  }

  void end_fill() {
    if (fills_.empty()) return;
    const size_t at = random_() % fills_.size();
    Filling filling = std::move(fills_[at]);
    fills_.erase(fills_.begin() + at);
    const auto [file, index, generation] = filling.name;
    const Stamp stamp = Stamp::of(key_of(file, index, generation), ++fill_count_);
    if (random_() % 4 == 0) {
      filling.fill.abandon(EIO);
      for (FrameWait& wait : filling.waits) EXPECT_EQ(wait.wait().error().code, EIO);
      return;
    }
    stamp.write(filling.fill.bytes());
    const Pin pin = filling.fill.publish(4096);
    EXPECT_TRUE(stamp.is_in(pin.bytes()));
    if (filling.drops == drops_[file]) published_[filling.name] = stamp;
    for (FrameWait& wait : filling.waits) {
      auto waited = wait.wait();
      ASSERT_TRUE(waited);
      EXPECT_TRUE(stamp.is_in(waited->bytes()));
      pins_.push_back({stamp, std::move(*waited)});
    }
  }

  void release_pin() {
    if (pins_.empty()) return;
    std::swap(pins_[random_() % pins_.size()], pins_.back());
    EXPECT_TRUE(pins_.back().stamp.is_in(pins_.back().pin.bytes()));
    pins_.pop_back();
  }

  void drop() {
    const uint64_t file = random_() % kFiles;
    test_.cache.drop(key_of(file, 0).file_id);
    ++drops_[file];
    std::erase_if(published_, [&](const auto& entry) { return std::get<0>(entry.first) == file; });
  }

  void resize() {
    const uint64_t budget = random_() % (test_.cache.frame_count() + 1);
    if (budget < budget_) {
      // The cache may choose which fills to take, so none is in flight here.
      while (!fills_.empty()) end_fill();
    }
    budget_ = budget;
    ASSERT_TRUE(test_.cache.resize(budget * 4096));
  }

  void check_budget() {
    std::set<uint32_t> held;
    for (const Held& h : pins_) held.insert(h.pin.frame());
    for (const Filling& f : fills_) held.insert(f.fill.frame());
    const uint64_t resident = test_.cache.stats().resident_bytes / 4096;
    EXPECT_LE(resident, budget_ + held.size());  // without pins: the budget
    EXPECT_GE(resident, held.size());
  }

  TestCache test_;
  std::mt19937_64 random_;
  uint64_t budget_;
  uint64_t fill_count_ = 0;
  uint64_t generation_[kFiles] = {};
  uint64_t drops_[kFiles] = {};
  std::map<Name, Stamp> published_;  // keys that may hit
  std::vector<Held> pins_;
  std::vector<Filling> fills_;
};

class CachePoliciesTest : public ::testing::TestWithParam<CachePolicy> {};

TEST_P(CachePoliciesTest, InvariantsHoldUnderRandomOperations) {
  for (const uint64_t frame_count : {1, 5, 16, 17, 100}) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(std::to_string(frame_count) + " frames, seed " + std::to_string(seed));
      RandomOperations(GetParam(), frame_count, seed).run(10000);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CachePoliciesTest, all_policies(), policy_test_name);

}  // namespace
}  // namespace graphlane
