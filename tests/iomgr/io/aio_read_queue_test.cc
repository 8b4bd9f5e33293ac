// AioReadQueue over real parts: any thread that polls completes reads.
#include "iomgr/io/aio_read_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "tests/iomgr/striped_fixture.h"
#include "tests/sizes.h"

namespace graphlane {
namespace {

class AioReadQueueTest : public StripedFixture {
 protected:
  // One read, with its memory.
  struct Read final : Completion {
    explicit Read(ByteRange range) : memory(range.length_bytes / sizeof(Page)) {
      piece = {.range = range, .buffer = memory.data()};
    }
    void on_done(int code) override {
      error = code;
      done.store(true, std::memory_order_release);
    }
    std::string bytes() const { return {memory[0].bytes, piece.range.length_bytes}; }
    std::vector<Page> memory;
    Piece piece;
    int error = -1;
    std::atomic<bool> done{false};
  };

  void SetUp() override {
    StripedFixture::SetUp();
    if (!queue_->works()) GTEST_SKIP() << "no asynchronous I/O here";
  }
  bool start(Read& read) {
    const PartRequest request{.map = map_,
                              .parts = *parts_,
                              .size_bytes = layout_.logical_size,
                              .op = IoOp::kRead,
                              .direct = true,
                              .pieces = {&read.piece, 1}};
    return queue_->submit(request, &read);
  }
  void drive(const Read& read) {
    const auto is_done = [&read] { return read.done.load(std::memory_order_acquire); };
    while (!is_done()) {
      // Another thread may have completed it since the look.
      if (!queue_->poll()) {
        ASSERT_TRUE(is_done());
      }
    }
  }
  const std::unique_ptr<AioReadQueue> queue_ = std::make_unique<AioReadQueue>();
};

TEST_F(AioReadQueueTest, ReadsWhatTheFileHolds) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 3, .first_device = 1}, 16 * kMiB);
  EXPECT_FALSE(queue_->poll()) << "nothing is under way";
  Read read({2 * kMiB + 4096, 9 * kMiB});
  ASSERT_TRUE(start(read));
  drive(read);
  EXPECT_EQ(read.error, 0);
  EXPECT_TRUE(read.bytes() == content_.substr(2 * kMiB + 4096, 9 * kMiB));
  EXPECT_FALSE(queue_->poll());
}

TEST_F(AioReadQueueTest, PollCompletesReadsOfOtherThreads) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 8 * kMiB);
  Read first({0, kMiB}), second({kMiB, 3 * kMiB});
  ASSERT_TRUE(start(first));
  ASSERT_TRUE(start(second));
  while (queue_->poll()) {
  }
  EXPECT_TRUE(first.done && second.done);
  EXPECT_TRUE(second.bytes() == content_.substr(kMiB, 3 * kMiB));
}

TEST_F(AioReadQueueTest, ManyThreadsSubmitAndPoll) {
  make_file({.stripe_depth_bytes = kMiB / 4, .device_count = 4, .first_device = 0}, 16 * kMiB);
  std::atomic<int> begun{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 100; ++i) {
        Read read({(t * 100 + i) * 37 % 15 * kMiB, kMiB});
        if (!start(read)) continue;  // other threads use all of it
        begun.fetch_add(1);
        drive(read);
        EXPECT_EQ(read.error, 0);
        EXPECT_TRUE(read.bytes() == content_.substr(read.piece.range.offset, kMiB));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(begun, 100);
  EXPECT_FALSE(queue_->poll());
}

TEST_F(AioReadQueueTest, TooManyAtOnceAreRejectedAndTheOthersComplete) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 8 * kMiB);
  std::vector<std::unique_ptr<Read>> reads;
  while (reads.size() < 100) {
    reads.push_back(std::make_unique<Read>(ByteRange{0, kMiB}));
    if (!start(*reads.back())) break;
  }
  ASSERT_LT(reads.size(), 100u);
  reads.pop_back();
  for (const auto& read : reads) drive(*read);
  Read again({kMiB, kMiB});
  EXPECT_TRUE(start(again));
  drive(again);
}

TEST_F(AioReadQueueTest, ATruncatedPartIsAnError) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 8 * kMiB);
  const std::string part = device(1) + "/" + PartName(layout_.file_id).c_str();
  std::filesystem::resize_file(part, kMiB);
  Read read({0, 8 * kMiB}), whole({0, 2 * kMiB});
  ASSERT_TRUE(start(read));
  ASSERT_TRUE(start(whole));
  drive(read);
  drive(whole);
  EXPECT_EQ(read.error, EIO);
  EXPECT_EQ(whole.error, 0) << "an error is not everybody's";
}

TEST_F(AioReadQueueTest, AFailedSubmissionIsAnError) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 8 * kMiB);
  Read read({0, 4 * kMiB});
  read.piece.buffer = reinterpret_cast<void*>(4096);  // unmapped memory
  ASSERT_TRUE(start(read));
  drive(read);
  EXPECT_EQ(read.error, EIO);
}

}  // namespace
}  // namespace graphlane
