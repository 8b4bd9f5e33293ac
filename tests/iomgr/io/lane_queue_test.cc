// LaneQueue: the order of I/Os, their merging, and their results.
#include "iomgr/io/lane_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "iomgr/base/fd.h"
#include "iomgr/io/lane.h"
#include "tests/iomgr/io/fault_queue.h"

namespace graphlane {
namespace {

using namespace std::chrono_literals;
using Clock = LaneQueue::Clock;
constexpr uint64_t kPiece = 65536;

LaneIo io_at(uint64_t offset, uint64_t length = kPiece, int fd = 5, IoOp op = IoOp::kRead) {
  LaneIo io;
  io.op = op;
  io.fd = io.fd_buffered = fd;
  io.part_offset = offset;
  io.length_bytes = io.expected_bytes = length;
  io.iov_count = io.segment_count = 1;
  io.iov[0] = {.iov_base = reinterpret_cast<void*>(offset), .iov_len = length};
  return io;
}

// Offsets of the batches' members, "+" between those of one batch.
std::string order(LaneQueue& queue, Clock::time_point now) {
  std::string text;
  auto batch = std::make_unique<LaneBatch>();
  while (!queue.empty()) {
    queue.take(now, batch.get());
    text += text.empty() ? "" : " ";
    for (const LaneIo* io = batch->members; io != nullptr; io = io->next) {
      text += (io == batch->members ? "" : "+") + std::to_string(io->part_offset / kPiece);
    }
  }
  return text;
}

TEST(LaneQueueTest, ServesUpwardsThenFromTheLowest) {
  const Clock::time_point now{};
  std::vector<LaneIo> ios = {io_at(5000 * kPiece), io_at(2000 * kPiece), io_at(7000 * kPiece)};
  LaneQueue queue(0ms);
  for (LaneIo& io : ios) queue.push(&io, now);
  auto batch = std::make_unique<LaneBatch>();
  queue.take(now, batch.get());
  EXPECT_EQ(batch->io.part_offset, 2000 * kPiece);
  LaneIo behind = io_at(5 * kPiece), ahead = io_at(6000 * kPiece), other = io_at(0, kPiece, 6);
  for (LaneIo* io : {&behind, &ahead, &other}) queue.push(io, now);
  EXPECT_EQ(order(queue, now), "5000 6000 7000 0 5");
}

// Otherwise it would stay behind, and the head would alternate between it and the others. While it
// catches up, no other waiter moves the head back.
TEST(LaneQueueTest, ASlightlyTrailingWaiterGoesFirst) {
  LaneQueue queue(0ms);
  auto batch = std::make_unique<LaneBatch>();
  LaneIo first = io_at(50 * kPiece), ahead = io_at(60 * kPiece), behind = io_at(40 * kPiece),
         after = io_at(45 * kPiece), further = io_at(20 * kPiece);
  for (LaneIo* io : {&first, &ahead}) queue.push(io, {});
  queue.take({}, batch.get());
  for (LaneIo* io : {&behind, &after}) queue.push(io, {});
  queue.take({}, batch.get());
  EXPECT_EQ(batch->members, &behind);
  queue.push(&further, {});
  queue.take({}, batch.get());
  EXPECT_EQ(batch->members, &after);
  EXPECT_EQ(order(queue, {}), "60 20");
}

// A stream could otherwise overtake it for ever.
TEST(LaneQueueTest, AnOvertakenWaiterGoesFirst) {
  LaneQueue queue(0ms);
  auto batch = std::make_unique<LaneBatch>();
  LaneIo behind = io_at(0);
  std::vector<LaneIo> stream;
  for (uint64_t i = 10; i < 30; ++i) stream.push_back(io_at(i * kLaneIoMax, kLaneIoMax));
  queue.push(&stream[0], {});
  queue.take({}, batch.get());
  queue.push(&behind, {});
  uint64_t overtaken = 0;
  for (size_t next = 1; next < stream.size() && batch->members != &behind; ++next) {
    queue.push(&stream[next], {});
    queue.take({}, batch.get());
    if (batch->members != &behind) overtaken += kLaneIoMax;
  }
  EXPECT_EQ(batch->members, &behind);
  EXPECT_EQ(overtaken, Elevator::kOvertakingMax + kLaneIoMax);
}

// With many waiters, all of them wait long. Serving the oldest first would be first in, first out.
TEST(LaneQueueTest, WaitersAreServedByPlace) {
  const Clock::time_point begin = Clock::time_point{} + std::chrono::hours(1);
  LaneQueue queue(0ms);
  std::vector<LaneIo> ios;
  for (const uint64_t place : {50, 10, 90, 30, 70}) {
    ios.push_back(io_at(place * kLaneIoMax, kLaneIoMax));
  }
  for (LaneIo& io : ios) queue.push(&io, begin);
  auto batch = std::make_unique<LaneBatch>();
  for (const uint64_t place : {10, 30, 50, 70, 90}) {
    queue.take(begin + std::chrono::hours(place), batch.get());
    EXPECT_EQ(batch->io.part_offset, place * kLaneIoMax);
  }
}

TEST(LaneQueueTest, AdjacentIosAreMerged) {
  LaneQueue queue(0ms);
  std::vector<LaneIo> ios = {io_at(3 * kPiece), io_at(1 * kPiece), io_at(2 * kPiece),
                             io_at(7 * kPiece), io_at(4 * kPiece, kPiece, 6)};
  for (LaneIo& io : ios) queue.push(&io, {});
  auto batch = std::make_unique<LaneBatch>();
  queue.take({}, batch.get());
  EXPECT_EQ(batch->io.length_bytes, 3 * kPiece);
  EXPECT_EQ(batch->io.segment_count, 3u);
  ASSERT_EQ(batch->io.iov_count, 3u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(batch->io.iov[i].iov_base, reinterpret_cast<void*>((i + 1) * kPiece));
  }
  EXPECT_EQ(order(queue, {}), "7 4");
}

TEST(LaneQueueTest, UnmergeableIosStaySeparate) {
  const auto pair = [](const LaneIo& a, const LaneIo& b) {
    LaneIo one = a, two = b;
    LaneQueue queue(0ms);
    queue.push(&one, {});
    queue.push(&two, {});
    auto batch = std::make_unique<LaneBatch>();
    queue.take({}, batch.get());
    return !queue.empty();
  };
  const LaneIo first = io_at(0), second = io_at(kPiece);
  EXPECT_FALSE(pair(first, second));
  EXPECT_TRUE(pair(first, io_at(kPiece, kPiece, 5, IoOp::kWrite)));
  EXPECT_TRUE(pair(first, io_at(2 * kPiece)));  // a gap
  EXPECT_TRUE(pair(first, io_at(kPiece / 2)));  // they overlap
  EXPECT_TRUE(pair(io_at(0, kLaneIoMax), io_at(kLaneIoMax)));
  LaneIo alone = second;
  alone.alone = true;
  EXPECT_TRUE(pair(first, alone));
  LaneIo at_end = first;  // the part ends within it
  at_end.expected_bytes -= 1;
  EXPECT_TRUE(pair(at_end, second));
  LaneIo many = first;
  many.iov_count = kIovMax;
  EXPECT_TRUE(pair(many, second));
}

TEST(LaneQueueTest, TakesEachOnceWhateverTheOrder) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<LaneIo> ios(1 + random() % 60);
    LaneQueue queue(0ms);
    std::map<const LaneIo*, int> taken;
    auto batch = std::make_unique<LaneBatch>();
    Clock::time_point now{};
    const auto take = [&] {
      queue.take(now, batch.get());
      uint64_t end = batch->io.part_offset;
      for (const LaneIo* io = batch->members; io != nullptr; io = io->next) {
        EXPECT_EQ(io->part_offset, end);
        end += io->length_bytes;
        ++taken[io];
      }
      EXPECT_EQ(end, batch->io.part_offset + batch->io.length_bytes);
    };
    for (LaneIo& io : ios) {
      io = io_at(random() % 30 * kPiece, kPiece, static_cast<int>(5 + random() % 2));
      now += std::chrono::milliseconds(random() % 100);
      queue.push(&io, now);
      if (random() % 3 == 0) take();
      while (!queue.empty() && random() % 5 == 0) take();
    }
    while (!queue.empty()) take();
    EXPECT_EQ(taken.size(), ios.size());
    for (const auto& [io, count] : taken) EXPECT_EQ(count, 1);
  }
}

// Otherwise a disk would seek there, back for the piece between, and forward again.
TEST(LaneQueueTest, WaitsForTheMissingPiece) {
  const Clock::time_point begin = Clock::time_point{} + 1h;
  LaneQueue queue(3ms);
  LaneIo last = io_at(0, 4 * kPiece), next = io_at(8 * kPiece),
         between = io_at(4 * kPiece, 4 * kPiece);
  auto batch = std::make_unique<LaneBatch>();
  queue.push(&last, begin);
  EXPECT_EQ(queue.waits_until(begin), begin);
  queue.take(begin, batch.get());
  queue.push(&next, begin + 10ms);
  EXPECT_EQ(queue.waits_until(begin + 5ms), begin + 13ms);
  EXPECT_EQ(queue.waits_until(begin + 12ms), begin + 15ms);
  queue.push(&between, begin + 12ms);
  EXPECT_EQ(queue.waits_until(begin + 12ms), begin + 12ms);
  queue.take(begin, batch.get());
  EXPECT_EQ(batch->io.length_bytes, 5 * kPiece);
}

TEST(LaneQueueTest, WaitsOnlyForSweeps) {
  const auto waits = [](const LaneIo& first, const LaneIo& second) {
    LaneIo last = first, next = second;
    LaneQueue queue(3ms);
    auto batch = std::make_unique<LaneBatch>();
    queue.push(&last, {});
    queue.take({}, batch.get());
    queue.push(&next, {});
    return queue.waits_until({}) > Clock::time_point{};
  };
  const LaneIo last = io_at(1000 * kPiece, 4 * kPiece);
  EXPECT_TRUE(waits(last, io_at(1005 * kPiece)));
  EXPECT_FALSE(waits(last, io_at(1004 * kPiece)));                  // it is the next piece
  EXPECT_FALSE(waits(last, io_at(999 * kPiece)));                   // behind the head
  EXPECT_FALSE(waits(last, io_at(2000 * kPiece)));                  // of another sweep
  EXPECT_FALSE(waits(last, io_at(1005 * kPiece, kPiece, 6)));       // of another file
  EXPECT_FALSE(waits(io_at(1000 * kPiece), io_at(1002 * kPiece)));  // of no sweep
}

// After the 5th gap it waits at the 7th, 11th and 19th, and finally at every 64th, until a gap is
// filled.
TEST(LaneQueueTest, WaitsSeldomForReadersWithGaps) {
  LaneQueue queue(3ms);
  auto batch = std::make_unique<LaneBatch>();
  uint64_t place = 0;
  const auto read = [&](uint64_t gap) {
    place += gap;
    LaneIo io = io_at(place * kPiece, 4 * kPiece);
    place += 4;
    queue.push(&io, {});
    const bool waits = queue.waits_until({}) > Clock::time_point{};
    queue.take({}, batch.get());
    return waits;
  };
  const auto waits_in = [&](int count) {
    int waits = 0;
    for (int i = 0; i < count; ++i) waits += read(1) ? 1 : 0;
    return waits;
  };
  read(0);
  EXPECT_EQ(waits_in(15), 7);
  EXPECT_EQ(waits_in(1000), 3 + 14);  // at the 19th, 35th, 67th
  while (!read(1)) {
  }
  EXPECT_EQ(waits_in(63), 0);
  LaneIo next = io_at((place + 4) * kPiece, 4 * kPiece),
         between = io_at(place * kPiece, 4 * kPiece);
  queue.push(&next, {});
  EXPECT_GT(queue.waits_until({}), Clock::time_point{});
  queue.push(&between, {});
  queue.take({}, batch.get());
  place += 8;
  EXPECT_EQ(waits_in(2), 2);
}

Faults* faults = nullptr;

Result<IoQueue*> make_fault_queue(IoBackend, uint32_t depth, IoQueueStorage* storage,
                                  IoBackend* chosen, int) {
  *chosen = IoBackend::kThreads;
  return new (storage) FaultQueue(*faults, depth);
}

// One device with one I/O in flight: the others wait and are merged.
class LaneTest : public ::testing::Test {
 protected:
  static constexpr int kCount = 6;
  void SetUp() override {
    faults = &faults_;
    fd_.reset(::open(::testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_TRUE(fd_);
    for (size_t i = 0; i < content_.size(); ++i) content_[i] = static_cast<char>(i / 1000);
    ASSERT_EQ(::pwrite(fd_.get(), content_.data(), content_.size(), 0),
              static_cast<ssize_t>(content_.size()));
    lane_ = *Lane::start("device", IoBackend::kThreads, /*depth=*/2, 0ms, &make_fault_queue);
  }

  void push(uint64_t offset, uint64_t length, LaneRequest& request) {
    LaneIo* io = lane_->acquire();
    *io = io_at(offset, length, fd_.get());
    io->iov[0].iov_base = read_.data() + offset;
    request.begin();
    lane_->push(io, &request);
  }

  // Reads all pieces at once. Returns the error of each piece.
  std::vector<int> read_all() {
    std::vector<LaneRequest> requests(kCount);
    faults_.hold();
    for (int i = 0; i < kCount; ++i) {
      push(i * kPiece, kPiece, requests[i]);
      if (i < 2) faults_.wait_for(i + 1);  // one for each thread
    }
    faults_.let_go();
    std::vector<int> errors;
    for (LaneRequest& request : requests) errors.push_back(request.wait());
    return errors;
  }

  Faults faults_;
  Fd fd_;
  std::vector<char> content_ = std::vector<char>(kCount * kPiece);
  std::vector<char> read_ = std::vector<char>(kCount * kPiece);
  std::unique_ptr<Lane> lane_;
};

TEST_F(LaneTest, MergesWaitingIos) {
  EXPECT_EQ(read_all(), std::vector<int>(kCount, 0));
  EXPECT_EQ(read_, content_);
  EXPECT_EQ(faults_.lengths(), (std::vector<uint64_t>{kPiece, kPiece, 4 * kPiece}));
  lane_.reset();
}

TEST_F(LaneTest, TakesUpWhereAMergedTransferEnded) {
  faults_.limit(kPiece / 3);
  EXPECT_EQ(read_all(), std::vector<int>(kCount, 0));
  EXPECT_EQ(read_, content_);
}

TEST_F(LaneTest, AnErrorFailsOnlyTheRequestsOfItsBytes) {
  faults_.fail(3 * kPiece + 100, EIO);
  EXPECT_EQ(read_all(), (std::vector<int>{0, 0, 0, EIO, 0, 0}));
  std::fill_n(read_.begin() + 3 * kPiece, kPiece, 0);
  std::fill_n(content_.begin() + 3 * kPiece, kPiece, 0);
  EXPECT_EQ(read_, content_);
}

// It waits without a limit: for ever, if the piece did not come.
TEST_F(LaneTest, WaitsForTheMissingPiece) {
  lane_ = *Lane::start("device", IoBackend::kThreads, /*depth=*/1, 24h, &make_fault_queue);
  LaneRequest first, rest;
  push(0, 4 * kPiece, first);
  EXPECT_EQ(first.wait(), 0);
  push(5 * kPiece, kPiece / 2, rest);
  std::this_thread::sleep_for(20ms);  // long enough for a lane that does not wait
  push(4 * kPiece, kPiece, rest);
  EXPECT_EQ(rest.wait(), 0);
  EXPECT_TRUE(std::equal(content_.begin(), content_.end() - kPiece / 2, read_.begin()));
  EXPECT_GE(faults_.lengths()[1], kPiece);  // the piece alone, or with what follows it
}

TEST_F(LaneTest, CountsWhatWasMerged) {
  read_all();
  const LaneCounters& counters = lane_->counters();
  EXPECT_EQ(counters.io_count.load(), 3u);
  EXPECT_EQ(counters.merged_count.load(), 3u);
  EXPECT_EQ(counters.segment_count.load(), static_cast<uint64_t>(kCount));
  EXPECT_EQ(counters.bytes_read.load(), kCount * kPiece);
}

// Reads of pipes, which complete when the test writes.
class LaneDepthTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kDepth = 8;
  struct Read {
    Fd from, to;
    char byte = 0;
    LaneRequest request;
  };

  void SetUp() override {
    auto lane = Lane::start("device", IoBackend::kUring, kDepth, 0ms);
    if (!lane) GTEST_SKIP() << "not applicable: " << lane.error().text;
    lane_ = std::move(*lane);
    for (Read& read : reads_) {
      int fds[2];
      ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
      read.from.reset(fds[0]);
      read.to.reset(fds[1]);
    }
  }

  void begin(Read& read) {
    LaneIo* const io = lane_->acquire();
    *io = io_at(0, 1, read.from.get());
    io->iov[0].iov_base = &read.byte;
    read.request.begin();
    lane_->push(io, &read.request);
  }
  void let_end(Read& read) { ASSERT_EQ(::write(read.to.get(), "x", 1), 1); }

  std::unique_ptr<Lane> lane_;
  Read reads_[kDepth];
};

// Each time all threads of the lane wait for the earlier I/Os.
TEST_F(LaneDepthTest, TheDepthIsKeptHoweverIosArrive) {
  for (Read& read : reads_) {
    begin(read);
    std::this_thread::sleep_for(10ms);  // long enough for a thread to take it, and wait
  }
  for (uint32_t i = kDepth; i-- > 0;) {  // later I/Os do not wait for earlier ones
    let_end(reads_[i]);
    EXPECT_EQ(reads_[i].request.wait(), 0);
    EXPECT_EQ(reads_[i].byte, 'x');
  }
}

}  // namespace
}  // namespace graphlane
