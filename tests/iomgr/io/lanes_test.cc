// Lanes over a real volume, with every backend that this kernel allows.
#include "iomgr/io/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "iomgr/read/page_reader.h"
#include "tests/iomgr/imported_file.h"

namespace graphlane {
namespace {

constexpr uint64_t kLanesFileSize = 5'000'011;

class LanesTest : public ::testing::TestWithParam<IoBackend> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(made_.make(65536, kLanesFileSize));
    auto lanes = Lanes::start(*volume_, {.backend = GetParam(), .depth = 4});
    if (!lanes) GTEST_SKIP() << "not applicable: " << lanes.error().text;
    lanes_ = std::move(*lanes);
  }

  ImportedFile made_;
  const std::string& directory_ = made_.directory;
  const std::string& content_ = made_.content;
  const std::shared_ptr<const Volume>& volume_ = made_.volume;
  std::shared_ptr<const StripedFile>& file_ = made_.file;
  std::unique_ptr<Lanes> lanes_;
};

TEST_P(LanesTest, ReadsTheWholeFileAndCountsEveryByteOnce) {
  std::vector<char> buffer(kLanesFileSize + 4096);
  ASSERT_EQ(
      lanes_->read(*file_, {.offset = 0, .length_bytes = buffer.size()}, buffer.data(), false),
      static_cast<ssize_t>(kLanesFileSize));
  EXPECT_EQ(std::string(buffer.data(), kLanesFileSize), content_);
  uint64_t bytes = 0;
  uint64_t segments = 0;
  for (const LaneStats& lane : lanes_->stats()) {
    bytes += lane.bytes_read;
    segments += lane.segment_count;
    EXPECT_LE(lane.io_count, 1u + lane.segment_count / kIovMax) << lane.device;
  }
  EXPECT_EQ(bytes, kLanesFileSize);
  EXPECT_EQ(segments, (kLanesFileSize + 65535) / 65536);
}

TEST_P(LanesTest, StartNoThreadBeforeTheFirstRequest) {
  const auto lazy =
      Lanes::start(*volume_, {.backend = GetParam(), .depth = 4, .at_first_request = true});
  ASSERT_TRUE(lazy);
  EXPECT_EQ((*lazy)->backend(), IoBackend::kAuto) << "none was set up";
  ASSERT_EQ((*lazy)->stats().size(), volume_->device_count());
  EXPECT_EQ((*lazy)->stats()[0].device, volume_->devices()[0].directory);
  // one of them starts the lanes, the others wait for it
  std::vector<std::future<std::string>> readers;
  for (int i = 0; i < 4; ++i) {
    readers.push_back(std::async(std::launch::async, [&] {
      std::string got(kLanesFileSize, '\0');
      const ssize_t length =
          (*lazy)->read(*file_, {.offset = 0, .length_bytes = got.size()}, got.data(), false);
      return length == static_cast<ssize_t>(got.size()) ? got : std::string();
    }));
  }
  for (auto& reader : readers) EXPECT_EQ(reader.get(), content_);
  EXPECT_EQ((*lazy)->backend(), lanes_->backend());
}

// Sums the bytes of its range in place.
struct SumTask final : PageTask {
  void run(const PageBytes& bytes) noexcept override {
    bytes.for_each<unsigned char>([&](unsigned char byte) { sum += byte; });
    ++calls;
  }
  void failed(int) noexcept override { ++failures; }
  uint64_t sum = 0;
  int calls = 0;
  int failures = 0;
};

TEST_P(LanesTest, RunsTasksOfSeveralThreadsOnPagesThatTheyShare) {
  const auto reader = PageReader::start({.budget_bytes = 4 << 20});
  ASSERT_TRUE(reader);
  LaneEngine engine(*lanes_, file_);
  const PagedFile paged{.file_id = file_->layout().file_id,
                        .generation = 1,
                        .size_bytes = file_->size(),
                        .map = file_->map(),
                        .parts = file_->parts(),
                        .engine = engine};
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<SumTask> tasks(2000);
      std::vector<uint64_t> sums(tasks.size(), 0);
      PageQueue queue(**reader);
      for (size_t i = 0; i < tasks.size(); ++i) {
        const ByteRange range{random() % kLanesFileSize, random() % 9000};
        for (const char c : content_.substr(range.offset, range.length_bytes)) {
          sums[i] += static_cast<unsigned char>(c);
        }
        queue.submit(paged, range, tasks[i]);
        if (random() % 100 == 0) queue.wait();
      }
      while (queue.wait()) {
      }
      for (size_t i = 0; i < tasks.size(); ++i) {
        wrong += tasks[i].sum != sums[i] || tasks[i].calls != 1 || tasks[i].failures != 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE((*reader)->stats().resident_bytes, 4u << 20);
}

TEST_P(LanesTest, ReadsAtAndPastTheEnd) {
  char buffer[100];
  EXPECT_EQ(
      lanes_->read(*file_, {.offset = kLanesFileSize - 7, .length_bytes = 100}, buffer, false), 7);
  EXPECT_EQ(lanes_->read(*file_, {.offset = kLanesFileSize, .length_bytes = 100}, buffer, false),
            0);
  EXPECT_EQ(
      lanes_->read(*file_, {.offset = kLanesFileSize * 9, .length_bytes = 100}, buffer, false), 0);
  EXPECT_EQ(lanes_->read(*file_, {.offset = 5, .length_bytes = 0}, buffer, false), 0);
}

// The thread sanitizer runs this test too.
TEST_P(LanesTest, ServesManyReadersAtOnce) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(6, 0);
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int round = 0; round < 100; ++round) {
        const uint64_t offset = random() % kLanesFileSize / 4096 * 4096;
        const uint64_t length = (1 + random() % 200) * 4096;
        auto* buffer = static_cast<char*>(std::aligned_alloc(4096, length));
        const ssize_t n = lanes_->read(*file_, {.offset = offset, .length_bytes = length}, buffer,
                                       random() % 2 == 0);
        const uint64_t expected = std::min(length, kLanesFileSize - offset);
        if (n != static_cast<ssize_t>(expected) ||
            content_.compare(offset, expected, buffer, expected) != 0) {
          ++wrong[t];
        }
        std::free(buffer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(6, 0));
}

TEST_P(LanesTest, FailsAReadWhosePartHasBeenCutWhileOpen) {
  const std::string part = volume_->part_path(1, file_->layout().file_id);
  std::filesystem::resize_file(part, 65536);
  std::vector<char> buffer(kLanesFileSize);
  EXPECT_EQ(
      lanes_->read(*file_, {.offset = 0, .length_bytes = kLanesFileSize}, buffer.data(), false),
      -EIO);
  // Bytes on the other devices are served.
  uint64_t offset = 0;
  while (file_->map().locate(offset).device_index == 1) offset += 65536;
  EXPECT_EQ(lanes_->read(*file_, {.offset = offset, .length_bytes = 65536}, buffer.data(), false),
            65536);
}

// A submitted read, with its own memory.
struct Begun final : Completion {
  void on_done(int outcome) override { told.set_value(outcome); }

  std::vector<char> bytes;
  Piece piece;
  std::promise<int> told;
};

class LanesStartTest : public LanesTest {
 protected:
  bool begin(Begun* begun, ByteRange range) {
    begun->bytes.resize(range.length_bytes);
    begun->piece = {.range = range, .buffer = begun->bytes.data()};
    return lanes_->submit({.map = file_->map(),
                           .parts = file_->parts(),
                           .size_bytes = file_->size(),
                           .op = IoOp::kRead,
                           .direct = false,
                           .pieces = {&begun->piece, 1}},
                          file_, begun);
  }
};

TEST_P(LanesStartTest, PrefetchesWhileNoClientWaits) {
  Begun begun;
  ASSERT_TRUE(begin(&begun, {.offset = 100, .length_bytes = 3'000'000}));
  EXPECT_EQ(begun.told.get_future().get(), 0);
  EXPECT_EQ(content_.compare(100, 3'000'000, begun.bytes.data(), 3'000'000), 0);
}

TEST_P(LanesStartTest, TheFileStaysOpenAndCompletesBeforeTheLanesEnd) {
  std::vector<Begun> begun(8);
  for (Begun& one : begun) ASSERT_TRUE(begin(&one, {.offset = 0, .length_bytes = kLanesFileSize}));
  file_.reset();
  lanes_.reset();
  for (Begun& one : begun) {
    EXPECT_EQ(one.told.get_future().get(), 0);
    EXPECT_EQ(content_.compare(0, kLanesFileSize, one.bytes.data(), kLanesFileSize), 0);
  }
}

TEST_P(LanesStartTest, ReportsTheErrorOfOneDevice) {
  std::filesystem::resize_file(volume_->part_path(1, file_->layout().file_id), 65536);
  Begun begun;
  ASSERT_TRUE(begin(&begun, {.offset = 0, .length_bytes = kLanesFileSize}));
  EXPECT_EQ(begun.told.get_future().get(), EIO);
}

// The lanes have no room for all of them. A rejected request moves no byte.
TEST_P(LanesStartTest, ManyRequestsAtOnceAreSubmittedOrRejected) {
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int round = 0; round < 100; ++round) {
        std::vector<Begun> begun(8);
        std::vector<bool> going;
        for (Begun& one : begun) {
          going.push_back(begin(&one, {.offset = random() % 1'000'000, .length_bytes = 300'000}));
        }
        for (size_t i = 0; i < begun.size(); ++i) {
          if (!going[i]) continue;
          ASSERT_EQ(begun[i].told.get_future().get(), 0);
          ASSERT_EQ(content_.compare(begun[i].piece.range.offset, 300'000, begun[i].bytes.data(),
                                     300'000),
                    0);
          ++done;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(done, 400);
}

const auto kBackends = ::testing::Values(IoBackend::kUring, IoBackend::kAio, IoBackend::kThreads);
const auto kBackendName = [](const auto& row) { return std::string(name_of(row.param)); };

INSTANTIATE_TEST_SUITE_P(Backends, LanesStartTest, kBackends, kBackendName);
INSTANTIATE_TEST_SUITE_P(Backends, LanesTest, kBackends, kBackendName);

}  // namespace
}  // namespace graphlane
