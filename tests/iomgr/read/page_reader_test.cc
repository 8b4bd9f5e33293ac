// Each task on pages runs once, on the right bytes, with few device reads.
#include "iomgr/read/page_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "iomgr/io/aio_read_queue.h"
#include "tests/iomgr/striped_fixture.h"
#include "tests/sizes.h"

namespace graphlane {
namespace {

constexpr uint64_t kReaderPage = PageReader::kPageBytes;
constexpr StripeGeometry kThree{
    .stripe_depth_bytes = 64 << 10, .device_count = 3, .first_device = 1};

// The task's arguments, and its action.
struct Task final : PageTask {
  void run(const PageBytes& bytes) noexcept override {
    got.resize(bytes.size_bytes());
    bytes.copy(0, std::as_writable_bytes(std::span(got)));
    ++calls;
    if (then) then();
  }
  void failed(int errno_value) noexcept override {
    error = errno_value;
    ++calls;
  }
  std::string got;
  int calls = 0;
  int error = 0;
  std::function<void()> then;
};

class PageReaderTest : public StripedFixture, public IoEngine {
 protected:
  void start(uint64_t budget_bytes) {
    auto reader = PageReader::start({.budget_bytes = budget_bytes});
    ASSERT_TRUE(reader);
    reader_ = std::move(*reader);
    queue_ = std::make_unique<PageQueue>(*reader_);
    paged_ = std::make_unique<PagedFile>(PagedFile{.file_id = layout_.file_id,
                                                   .generation = 1,
                                                   .size_bytes = layout_.logical_size,
                                                   .map = map_,
                                                   .parts = *parts_,
                                                   .engine = *this});
  }

  bool fails(const PartRequest& request) const {
    return std::any_of(request.pieces.begin(), request.pieces.end(), [&](const Piece& piece) {
      return piece.range.offset <= bad_byte_ && bad_byte_ < piece.range.end();
    });
  }
  int run(const PartRequest& request) override {
    if (fails(request)) return EIO;
    RequestCutter cutter(request);
    for (LaneIo io; cutter.next(&io);) {
      int error = 0;
      const ssize_t n = sys::preadv(io.fd, io.iov, io.iov_count, io.part_offset);
      if (settle(&io, n < 0 ? -errno : n, &error) != IoStep::kDone) return error ? error : EIO;
      io_count_ += 1;
      moved_bytes_ += io.moved_bytes;
    }
    return 0;
  }
  bool submit(const PartRequest& request, Completion* end) override {
    return begins_ && !fails(request) && ahead_.submit(request, end);
  }
  bool poll() override { return ahead_.poll(); }

  void TearDown() override {
    queue_.reset();
    reader_.reset();
    StripedFixture::TearDown();
  }

  void run_all() {
    while (queue_->wait()) {
    }
    EXPECT_EQ(queue_->waiting_count(), 0u);
  }
  std::string expected(ByteRange range) const {
    return range.offset < content_.size() ? content_.substr(range.offset, range.length_bytes) : "";
  }
  uint64_t pages_of(uint64_t count) const { return count * kReaderPage; }

  std::unique_ptr<PageReader> reader_;
  std::unique_ptr<PageQueue> queue_;
  std::unique_ptr<PagedFile> paged_;
  AioReadQueue ahead_;
  bool begins_ = false;
  uint64_t bad_byte_ = UINT64_MAX;
  std::atomic<uint64_t> io_count_{0};
  std::atomic<uint64_t> moved_bytes_{0};
};

// Once with blocking reads, once with reads that a thread must poll to completion.
class PageReaderWaysTest : public PageReaderTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    PageReaderTest::SetUp();
    begins_ = GetParam();
  }
};
INSTANTIATE_TEST_SUITE_P(Begun, PageReaderWaysTest, ::testing::Bool());

TEST_P(PageReaderWaysTest, EveryTaskRunsOnceOnItsBytes) {
  make_file(kThree, 6 * kMiB + 1234);
  start(2 * kMiB);
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  std::vector<Task> tasks(3000);
  std::vector<ByteRange> ranges;
  for (Task& task : tasks) {
    const uint64_t length_max = random() % 100 == 0 ? 2 * kMiB : 3 * kReaderPage;
    ranges.push_back({random() % (content_.size() + 2 * kReaderPage), random() % length_max});
    queue_->submit(*paged_, ranges.back(), task);
    if (random() % 500 == 0) queue_->wait();
  }
  run_all();
  for (size_t i = 0; i < tasks.size(); ++i) {
    ASSERT_EQ(tasks[i].calls, 1) << "seed " << seed << ", task " << i;
    ASSERT_EQ(tasks[i].error, 0);
    ASSERT_TRUE(tasks[i].got == expected(ranges[i]))
        << "seed " << seed << ": " << ranges[i].offset << "+" << ranges[i].length_bytes;
  }
  EXPECT_LE(reader_->stats().resident_bytes, 2 * kMiB);
}

TEST_F(PageReaderTest, CachedPagesRunTheirTaskAtOnce) {
  make_file(kThree, kMiB);
  start(2 * kMiB);
  Task first, second;
  queue_->submit(*paged_, {5000, 6000}, first);
  EXPECT_EQ(first.calls, 0) << "nothing blocks in submit()";
  run_all();
  const uint64_t ios = io_count_;
  queue_->submit(*paged_, {5100, 50}, second);
  EXPECT_EQ(second.calls, 1);
  EXPECT_EQ(second.got, expected({5100, 50}));
  EXPECT_EQ(io_count_, ios);
}

TEST_F(PageReaderTest, NeighboursAreOneIoWhateverTheirOrder) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 2 * kMiB);
  start(4 * kMiB);
  std::vector<uint64_t> pages(60);
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = 7 + i;
  std::shuffle(pages.begin(), pages.end(), std::mt19937_64(1));
  std::vector<Task> tasks(pages.size());
  for (size_t i = 0; i < pages.size(); ++i) {
    queue_->submit(*paged_, {pages_of(pages[i]) + 100, 8}, tasks[i]);
  }
  run_all();
  EXPECT_EQ(io_count_, 1u);
  EXPECT_EQ(moved_bytes_, pages_of(60));
}

TEST_F(PageReaderTest, SmallGapsAreReadThroughLargeOnesAreSkipped) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 2 * kMiB);
  start(4 * kMiB);
  reader_->read_through_gaps(4 * kReaderPage);
  queue_ = std::make_unique<PageQueue>(*reader_);
  const uint64_t pages[] = {7, 10, 15, 100};  // gaps of 2, 4 and 84 pages
  std::vector<Task> tasks(std::size(pages));
  for (size_t i = 0; i < tasks.size(); ++i) {
    queue_->submit(*paged_, {pages_of(pages[i]) + 100, 8}, tasks[i]);
  }
  run_all();
  EXPECT_EQ(io_count_, 2u);
  EXPECT_EQ(moved_bytes_, pages_of(9) + pages_of(1));
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(tasks[i].got, expected({pages_of(pages[i]) + 100, 8}));
  }
  EXPECT_FALSE(reader_->contains(*paged_, 8));
}

TEST_P(PageReaderWaysTest, AnErrorInAGapHitsNobody) {
  make_file({.stripe_depth_bytes = kMiB, .device_count = 2, .first_device = 0}, 2 * kMiB);
  start(4 * kMiB);
  reader_->read_through_gaps(kMiB);
  queue_ = std::make_unique<PageQueue>(*reader_);
  bad_byte_ = pages_of(8);
  std::vector<Task> tasks(40);  // with gaps, more than a fetch may have
  for (size_t i = 0; i < tasks.size(); ++i) {
    queue_->submit(*paged_, {pages_of(3 * i), 8}, tasks[i]);
  }
  run_all();
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(tasks[i].got, expected({pages_of(3 * i), 8}));
    EXPECT_EQ(tasks[i].calls, 1);
  }
}

TEST_F(PageReaderTest, ASharedPageIsReadOnce) {
  make_file(kThree, kMiB);
  start(2 * kMiB);
  std::vector<Task> tasks(500);
  for (size_t i = 0; i < tasks.size(); ++i) {
    queue_->submit(*paged_, {pages_of(9) + i, 8}, tasks[i]);
  }
  run_all();
  EXPECT_EQ(io_count_, 1u);
  for (size_t i = 0; i < tasks.size(); ++i) EXPECT_EQ(tasks[i].got, expected({pages_of(9) + i, 8}));
}

TEST_F(PageReaderTest, TasksThatSubmitTheNextDoNotGrowTheStack) {
  make_file(kThree, kMiB);
  start(2 * kMiB);
  constexpr int kCount = 200'000;
  int run_count = 0;
  Task task;
  task.then = [&] {
    if (++run_count < kCount) queue_->submit(*paged_, {pages_of(3) + 1, 8}, task);
  };
  queue_->submit(*paged_, {pages_of(3) + 1, 8}, task);
  run_all();
  EXPECT_EQ(run_count, kCount);
  EXPECT_EQ(io_count_, 1u);
}

TEST_P(PageReaderWaysTest, AnErrorHitsItsOwnRangeOnly) {
  make_file(kThree, kMiB);
  start(2 * kMiB);
  bad_byte_ = pages_of(20) + 5;
  std::vector<Task> tasks(40);
  for (size_t i = 0; i < tasks.size(); ++i) {
    queue_->submit(*paged_, {pages_of(i), kReaderPage}, tasks[i]);
  }
  run_all();
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(tasks[i].calls, 1);
    EXPECT_EQ(tasks[i].error, i == 20 ? EIO : 0) << i;
    EXPECT_TRUE(i == 20 || tasks[i].got == expected({pages_of(i), kReaderPage})) << i;
  }
}

TEST_F(PageReaderTest, RangesAreCutAtTheEndOfTheFile) {
  make_file(kThree, 10'000);
  start(2 * kMiB);
  Task last, past;
  queue_->submit(*paged_, {9'990, 100}, last);
  queue_->submit(*paged_, {10'000, 100}, past);
  run_all();
  EXPECT_EQ(last.got, expected({9'990, 10}));
  EXPECT_EQ(past.calls, 1);
  EXPECT_EQ(past.got, "");
}

TEST_F(PageReaderTest, ValuesOnTwoPagesAreWhole) {
  make_file(kThree, kMiB);
  start(2 * kMiB);
  struct Edge {
    uint32_t source, target;
    float weight;
  };
  struct Edges final : PageTask {
    void run(const PageBytes& bytes) noexcept override {
      bytes.for_each<Edge>([&](const Edge& edge) { got.push_back(edge); });
    }
    void failed(int) noexcept override {}
    std::vector<Edge> got;
  } edges;
  queue_->submit(*paged_, {7, 3 * kReaderPage + 5}, edges);
  run_all();
  ASSERT_EQ(edges.got.size(), (3 * kReaderPage + 5) / sizeof(Edge));
  EXPECT_EQ(0, std::memcmp(edges.got.data(), content_.data() + 7, edges.got.size() * sizeof(Edge)));
}

// Each waits for pages that the other has requested. Neither may wait for ever.
TEST_P(PageReaderWaysTest, QueuesOfSeveralThreadsShareFetches) {
  make_file(kThree, 4 * kMiB);
  begins_ = false;
  start(8 * kMiB);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      PageQueue queue(*reader_);
      std::mt19937_64 random(t);
      std::vector<Task> tasks(1024);
      for (size_t i = 0; i < tasks.size(); ++i) {
        const uint64_t page = GetParam() ? i : random() % 1024;
        queue.submit(*paged_, {pages_of(page), kReaderPage}, tasks[i]);
        tasks[i].then = [&, i, page] {
          wrong += tasks[i].got != content_.substr(pages_of(page), kReaderPage);
        };
      }
      while (queue.wait()) {
      }
      for (const Task& task : tasks) wrong += task.calls != 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(moved_bytes_, 4 * kMiB) << "no page twice";
}

TEST(PageReaderStartTest, TooLittleMemoryIsRejected) {
  EXPECT_EQ(PageReader::start({.budget_bytes = kMiB}).error().code, EINVAL);
}

}  // namespace
}  // namespace graphlane
