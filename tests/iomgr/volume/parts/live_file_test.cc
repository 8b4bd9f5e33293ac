#include "iomgr/volume/parts/live_file.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <random>
#include <thread>

#include "iomgr/io/lanes.h"
#include "iomgr/volume/parts/promises.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

constexpr uint32_t kDeviceCount = 3;
constexpr uint64_t kDepth = 4096;

class LiveFileTest : public VolumeFixture {
 protected:
  void SetUp() override {
    VolumeFixture::SetUp();
    create_volume(kDeviceCount, kDepth);
    auto lanes = Lanes::start(*volume_, {.backend = IoBackend::kThreads});
    ASSERT_TRUE(lanes) << lanes.error().text;
    lanes_ = std::move(*lanes);
  }
  void TearDown() override {
    lanes_.reset();
    VolumeFixture::TearDown();
  }

  // A striped file "f" of the volume with this content.
  void make(const std::string& content) {
    write(path("f"), content);
    const auto imported = import(path("f"));
    ASSERT_TRUE(imported) << imported.error().text;
  }

  Outcome<std::shared_ptr<LiveFile>> open() const {
    Fd stub(::open(in_volume("f").c_str(), O_RDWR | O_CLOEXEC));
    return LiveFile::open(*volume_, layout_of("f"), std::move(stub), "f");
  }

  std::shared_ptr<LiveFile> opened() const {
    auto live = open();
    EXPECT_TRUE(live) << live.error().text;
    return *live;
  }

  void put(LiveFile& live, uint64_t offset, const std::string& bytes) {
    const ByteRange range{.offset = offset, .length_bytes = bytes.size()};
    LiveFile::Write write(live, range);
    ASSERT_TRUE(write.begin());
    ASSERT_EQ(lanes_->write(live.writable(), range, bytes.data(), false), 0);
    write.end(range.end());
  }

  std::string get(const LiveFile& live) {
    std::string bytes(live.size(), 'x');
    const ssize_t got = lanes_->read(*live.file(), {0, bytes.size()}, bytes.data(), false);
    EXPECT_EQ(got, static_cast<ssize_t>(bytes.size()));
    return bytes;
  }

  // The invariant of the header.
  void expect_exact_parts(const LiveFile& live) const {
    for (uint32_t d = 0; d < kDeviceCount; ++d) {
      const auto size = static_cast<uint64_t>(stat_of(part_of("f", d)).st_size);
      EXPECT_EQ(size, live.file()->map().part_size(d, live.size())) << "device " << d;
    }
  }

  // Closes as a writer does that ends properly.
  static void close(LiveFile& live) {
    const uint64_t change_count = live.change_count();
    ASSERT_TRUE(live.sync(true));
    ASSERT_TRUE(live.close(change_count));
  }

  static int error_of(const Result<void>& result) { return result ? 0 : result.error().code; }

  std::unique_ptr<Lanes> lanes_;
};

TEST_F(LiveFileTest, RandomOperationsAgreeWithAModel) {
  for (const uint32_t seed : {1, 2, 3, 4}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](uint64_t end) { return random() % end; };
    std::filesystem::remove(in_volume("f"));
    std::string model = random_bytes(1 + below(60'000), seed);
    make(model);
    std::shared_ptr<LiveFile> live = opened();
    for (int step = 0; step < 120; ++step) {
      const uint64_t offset = below(80'000), length = 1 + below(20'000);
      switch (below(6)) {
        case 0:
        case 1: {
          const std::string bytes = random_bytes(length, random());
          put(*live, offset, bytes);
          model.resize(std::max(model.size(), offset + length));
          model.replace(offset, length, bytes);
          break;
        }
        case 2:
          ASSERT_TRUE(live->resize(offset));
          model.resize(offset);
          break;
        case 3: {  // the filesystem cannot do this, and nothing changes
          const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
          if (!live->allocate(mode, {offset, length})) break;
          const uint64_t end = std::min<uint64_t>(offset + length, model.size());
          if (offset < end) std::fill(model.begin() + offset, model.begin() + end, '\0');
          break;
        }
        case 4:
          if (!live->allocate(0, {offset, length})) break;
          model.resize(std::max(model.size(), offset + length));
          break;
        case 5:
          if (below(2) == 0) close(*live);
          live.reset();  // or killed
          live = opened();
          break;
      }
      ASSERT_EQ(live->size(), model.size()) << "step " << step;
      ASSERT_EQ(get(*live), model) << "step " << step;
      expect_exact_parts(*live);
    }
    close(*live);
    live.reset();
    EXPECT_EQ(layout_of("f").state, FileState::kClosed);
    EXPECT_EQ(content_of("f"), model);
  }
}

TEST_F(LiveFileTest, AWriteInPlaceLeavesTheStubClosed) {
  make(random_bytes(50'000));
  const auto live = opened();
  put(*live, 10'000, "in place");
  EXPECT_FALSE(live->is_open());
  put(*live, 49'999, "beyond");
  EXPECT_TRUE(live->is_open());
  EXPECT_EQ(layout_of("f").state, FileState::kOpen);
}

TEST_F(LiveFileTest, AChangeSinceTheSyncKeepsItOpen) {
  make(random_bytes(10'000));
  const auto live = opened();
  ASSERT_TRUE(live->resize(20'000));
  const uint64_t change_count = live->change_count();
  ASSERT_TRUE(live->resize(30'000));
  EXPECT_EQ(error_of(live->close(change_count)), EAGAIN);
  EXPECT_TRUE(live->is_open());
}

// The closing of idle files counts changes, and meanwhile a writer comes.
TEST_F(LiveFileTest, AWriteThatWasNotSyncedWholeKeepsItOpen) {
  make(random_bytes(10'000));
  const auto live = opened();
  const ByteRange range{.offset = 10'000, .length_bytes = 20'000};
  const std::string bytes = random_bytes(range.length_bytes);
  uint64_t change_count = 0;
  {
    LiveFile::Write write(*live, range);
    ASSERT_TRUE(write.begin());
    change_count = live->change_count();
    ASSERT_TRUE(live->sync(true));
    ASSERT_EQ(lanes_->write(live->writable(), range, bytes.data(), false), 0);
    write.end(range.end());
  }
  EXPECT_EQ(error_of(live->close(change_count)), EAGAIN);
  close(*live);
  EXPECT_EQ(layout_of("f").logical_size, 30'000u);
}

TEST_F(LiveFileTest, AnOutsideWriteInFlightKeepsItOpen) {
  make(random_bytes(10'000));
  const auto live = opened();
  const ByteRange range{.offset = 10'000, .length_bytes = 20'000};
  LiveFile::OutsideWrite write(*live, range);
  ASSERT_TRUE(write.begin());
  const uint64_t change_count = live->change_count();
  ASSERT_TRUE(live->sync(true));
  EXPECT_EQ(error_of(live->close(change_count)), EAGAIN);
  const std::string bytes = random_bytes(range.length_bytes);
  ASSERT_EQ(lanes_->write(live->writable(), range, bytes.data(), false), 0);
  write.end(range.end());
  close(*live);
  EXPECT_EQ(layout_of("f").logical_size, 30'000u);
}

// A writer stopped by SIGSTOP, for example: five seconds later the file is cut without it.
TEST_F(LiveFileTest, AnAbandonedOutsideWriteIsNotLost) {
  make(random_bytes(10'000));
  auto live = opened();
  const ByteRange range{.offset = 40'960, .length_bytes = kDepth};
  LiveFile::OutsideWrite write(*live, range);
  ASSERT_TRUE(write.begin());
  ASSERT_TRUE(live->resize(1'000));
  const std::string bytes = random_bytes(range.length_bytes);
  ASSERT_EQ(lanes_->write(live->writable(), range, bytes.data(), false), 0);
  write.end(range.end());
  expect_exact_parts(*live);
  ASSERT_TRUE(live->sync(false));
  live = nullptr;  // killed
  live = opened();
  ASSERT_EQ(live->size(), range.end());
  EXPECT_EQ(get(*live).substr(range.offset), bytes);
}

// A client that appends says only in the page how far it has come.
TEST_F(LiveFileTest, AnAppendCountsWhatTheClientHasGivenBack) {
  make(random_bytes(10'000));
  const auto live = opened();
  AppendProgress client;
  LiveFile::Append append(*live, client);
  const Result<uint64_t> from = append.begin(1 << 20);
  ASSERT_TRUE(from);
  ASSERT_EQ(*from, 10'000u);
  const std::string bytes = random_bytes(12);
  ASSERT_TRUE(client.take(10'000));
  EXPECT_FALSE(client.take(10'000)) << "one write at a time";
  ASSERT_EQ(
      lanes_->write(live->writable(), {.offset = 10'000, .length_bytes = 12}, bytes.data(), false),
      0);
  EXPECT_FALSE(live->settle());
  EXPECT_EQ(live->size(), 10'000u);
  ASSERT_TRUE(client.give_back(12));
  EXPECT_TRUE(live->settle());
  EXPECT_EQ(live->size(), 10'012u);
  EXPECT_FALSE(client.take(10'000)) << "elsewhere than at the end";
  live->recall();
  EXPECT_FALSE(client.is_granted());
  EXPECT_FALSE(client.take(10'012));
  expect_exact_parts(*live);
  EXPECT_EQ(get(*live).substr(10'000), bytes);
}

TEST_F(LiveFileTest, WhoeverChangesTheFileEndsAnAppend) {
  make(random_bytes(10'000));
  const auto live = opened();
  AppendProgress client;
  LiveFile::Append append(*live, client);
  ASSERT_TRUE(append.begin(1 << 20));
  ASSERT_TRUE(live->resize(20'000));
  EXPECT_FALSE(client.is_granted());
  ASSERT_EQ(*append.begin(1 << 20), 20'000u);
  LiveFile::Write write(*live, {.offset = 0, .length_bytes = 5});
  ASSERT_TRUE(write.begin_at_end());
  EXPECT_EQ(write.offset(), 20'000u);
  EXPECT_FALSE(client.is_granted());
}

// The page is the client's to write.
TEST_F(LiveFileTest, AnAppendNeverCountsMoreThanItWasGiven) {
  make(random_bytes(10'000));
  const auto live = opened();
  AppendProgress client;
  LiveFile::Append append(*live, client);
  ASSERT_TRUE(append.begin(100));
  ASSERT_TRUE(client.take(10'000));
  ASSERT_TRUE(client.give_back(1'000'000));
  live->settle();
  EXPECT_EQ(live->size(), 10'100u);
  client.grant(5);
  append.end();
  EXPECT_EQ(live->size(), 10'100u);
  expect_exact_parts(*live);
}

// The server has one thread for all clients.
TEST_F(LiveFileTest, ABeginningAppendWaitsForNoOther) {
  make(random_bytes(10'000));
  const auto live = opened();
  AppendProgress stopped, other;
  LiveFile::Append first(*live, stopped), second(*live, other);
  ASSERT_TRUE(first.begin(1 << 20));
  ASSERT_TRUE(stopped.take(10'000));
  const Result<uint64_t> refused = second.begin(1 << 20);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, EAGAIN);
  ASSERT_TRUE(stopped.give_back(12)) << "it was not interrupted";
  EXPECT_FALSE(stopped.take(10'012)) << "but is recalled";
  ASSERT_EQ(*second.begin(1 << 20), 10'012u);
  EXPECT_FALSE(stopped.is_granted());
}

// A truncation lets go of the lock while it waits for a write in place.
TEST_F(LiveFileTest, AnAppendThatBeginsBesideATruncationEndsBeforeIt) {
  make(random_bytes(10'000));
  const auto live = opened();
  LiveFile::OutsideWrite in_place(*live, {.offset = 0, .length_bytes = kDepth});
  ASSERT_TRUE(in_place.begin());
  auto cut = std::async(std::launch::async, [&] { return live->resize(5'000); });
  ::usleep(20'000);
  AppendProgress client;
  LiveFile::Append append(*live, client);
  (void)append.begin(1 << 20);
  in_place.end(kDepth);
  ASSERT_TRUE(cut.get());
  EXPECT_FALSE(client.is_granted());
  EXPECT_EQ(live->size(), 5'000u);
  expect_exact_parts(*live);
}

// Stopped by SIGSTOP, say: five seconds later the file goes on without it.
TEST_F(LiveFileTest, ARecallDoesNotWaitForEver) {
  make(random_bytes(10'000));
  const auto live = opened();
  AppendProgress client;
  LiveFile::Append append(*live, client);
  ASSERT_TRUE(append.begin(1 << 20));
  ASSERT_TRUE(client.take(10'000));
  ASSERT_TRUE(live->resize(5'000));
  EXPECT_FALSE(client.give_back(12)) << "the bytes do not count, and are written once more";
  EXPECT_EQ(live->size(), 5'000u);
  expect_exact_parts(*live);
}

TEST_F(LiveFileTest, SyncAndClosePromiseTheSizeBesideAWriteThatExtends) {
  make(std::string(8192, 'a'));
  const auto live = opened();
  const auto promise_beside_a_write = [&](auto promise) {
    put(*live, live->size(), std::string(5000, 'b'));
    const uint64_t size = live->size();
    LiveFile::Write write(*live, {.offset = size, .length_bytes = 1});
    EXPECT_TRUE(write.begin());
    auto ended = std::async(std::launch::async, promise);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    write.end(size);
    ended.get();
    EXPECT_EQ(look_at_open(layout_of("f"), live->writable().parts_of()).promised_bytes, size);
  };
  promise_beside_a_write([&] { EXPECT_TRUE(live->sync(false)); });
  promise_beside_a_write([&] { live->note_closed(); });
}

TEST_F(LiveFileTest, ClosingKeepsTheTimeOfTheLastWrite) {
  make(random_bytes(10'000));
  const auto live = opened();
  ASSERT_TRUE(live->resize(20'000));
  const timespec times[2] = {{1'000'000, 5}, {2'000'000, 7}};
  ASSERT_EQ(::futimens(live->stub_fd(), times), 0);
  close(*live);
  EXPECT_EQ(stat_of(in_volume("f")).st_mtim.tv_sec, 2'000'000);
  EXPECT_EQ(stat_of(in_volume("f")).st_mtim.tv_nsec, 7);
}

TEST_F(LiveFileTest, HasOneWriterOnly) {
  make(random_bytes(10'000));
  const Fd stub(::open(in_volume("f").c_str(), O_RDONLY | O_CLOEXEC));
  {
    const auto live = opened();
    EXPECT_TRUE(is_being_changed(stub.get()));
    const auto second = open();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, EBUSY);
  }
  EXPECT_FALSE(is_being_changed(stub.get()));
  EXPECT_TRUE(open());
}

TEST_F(LiveFileTest, MappingAndChangingExcludeEachOther) {
  make(random_bytes(10'000));
  const auto opened_anew = [this] {
    return Fd(::open(in_volume("f").c_str(), O_RDWR | O_CLOEXEC));
  };
  const Fd other = opened_anew();
  {
    const Fd one = opened_anew(), two = opened_anew();
    EXPECT_TRUE(lock_to_map(one.get()));
    EXPECT_TRUE(lock_to_map(two.get()));
    for (const short type : {F_RDLCK, F_WRLCK}) {
      EXPECT_EQ(lock_to_change(other.get(), type).error().code, EBUSY);
    }
    EXPECT_EQ(open().error().code, EBUSY);
  }
  {
    const auto live = opened();
    EXPECT_EQ(lock_to_map(other.get()).error().code, EBUSY);
  }
  EXPECT_TRUE(lock_to_change(other.get(), F_RDLCK));
  const Fd mapper = opened_anew();
  EXPECT_EQ(lock_to_map(mapper.get()).error().code, EBUSY);
  EXPECT_TRUE(lock_stub(other.get(), StubLock::kChange, F_UNLCK));
  EXPECT_TRUE(lock_to_map(mapper.get()));
}

TEST_F(LiveFileTest, AProcessThatOnlyClosesTheFileGivesWay) {
  make(random_bytes(10'000));
  const Fd other(::open(in_volume("f").c_str(), O_RDWR | O_CLOEXEC));
  auto closing = opened();
  EXPECT_EQ(lock_to_change(other.get(), F_RDLCK).error().code, EBUSY);  // at once
  closing->give_way();
  std::thread writer([&] { EXPECT_TRUE(lock_to_change(other.get(), F_RDLCK)); });
  while (!is_stub_locked(closing->stub_fd(), StubLock::kWanted, F_WRLCK)) std::this_thread::yield();
  closing.reset();
  writer.join();
}

// A reader may go on with the parts that a writer opened, after the writer has closed.
TEST_F(LiveFileTest, TheStubIsHeldWhileItsPartsAreOpen) {
  make(random_bytes(10'000));
  const Fd stub(::open(in_volume("f").c_str(), O_RDWR | O_CLOEXEC));
  std::shared_ptr<StripedFile> reading = opened()->file();
  EXPECT_FALSE(is_being_changed(stub.get()));
  EXPECT_EQ(lock_stub(stub.get(), StubLock::kParts, F_WRLCK).error().code, EBUSY);
  EXPECT_TRUE(is_stub_locked(stub.get(), StubLock::kParts, F_WRLCK));
  reading.reset();
  EXPECT_TRUE(lock_stub(stub.get(), StubLock::kParts, F_WRLCK));
  EXPECT_FALSE(is_stub_locked(stub.get(), StubLock::kParts, F_WRLCK));  // by another process
}

TEST_F(LiveFileTest, ReadersSeeTheSizeChange) {
  make(random_bytes(10'000));
  auto reading = StripedFile::open(*volume_, stub_of("f").get(), layout_of("f"), "f", O_RDONLY);
  ASSERT_TRUE(reading);
  Fd stub(::open(in_volume("f").c_str(), O_RDWR | O_CLOEXEC));
  const auto live = LiveFile::open(*volume_, layout_of("f"), std::move(stub), "f", *reading);
  ASSERT_TRUE(live) << live.error().text;
  put(**live, 20'000, "more");
  EXPECT_EQ((*reading)->size(), 20'004u);
  ASSERT_TRUE((*live)->resize(5));
  EXPECT_EQ((*reading)->size(), 5u);
}

// A reader has read the stub, and opens the parts after another process has cut them.
TEST_F(LiveFileTest, AFileThatIsCutMeanwhileCanBeOpened) {
  make(random_bytes(kDeviceCount * kDepth * 2));
  const Fd stub = stub_of("f");
  const Layout before = layout_of("f");
  const auto live = opened();
  ASSERT_TRUE(live->resize(5));
  const auto reading = StripedFile::open(*volume_, stub.get(), before, "f", O_RDONLY);
  ASSERT_TRUE(reading) << reading.error().text;
  EXPECT_EQ((*reading)->size(), 5u);
}

TEST_F(LiveFileTest, RepairsUnevenPartsOfADeadWriter) {
  const std::string content = random_bytes(kDeviceCount * kDepth * 2);
  make(content);
  ASSERT_TRUE(opened()->resize(content.size() + 1));  // and dies
  // Its next write reached only the third device.
  ASSERT_EQ(::truncate(part_of("f", 2).c_str(), 5 * kDepth), 0);
  const auto live = opened();
  EXPECT_GT(live->size(), content.size());
  expect_exact_parts(*live);
  EXPECT_EQ(get(*live).substr(0, content.size()), content);
}

// A part may be missing under its name for a moment: long parts stay long.
TEST_F(LiveFileTest, TakesTheSizeFromItsOpenParts) {
  const std::string content = random_bytes(kDeviceCount * kDepth * 2);
  make(content);
  ASSERT_TRUE(opened()->resize(content.size() + 1));  // and dies
  const auto reading = StripedFile::open(*volume_, stub_of("f").get(), layout_of("f"), "f", O_RDWR);
  ASSERT_TRUE(reading) << reading.error().text;
  const std::string part = part_of("f", 0);
  std::filesystem::rename(part, path("hidden"));
  Fd stub(::open(in_volume("f").c_str(), O_RDWR | O_CLOEXEC));
  auto live = LiveFile::open(*volume_, layout_of("f"), std::move(stub), "f", *reading);
  std::filesystem::rename(path("hidden"), part);
  ASSERT_TRUE(live) << live.error().text;
  EXPECT_EQ((*live)->size(), content.size() + 1);
  EXPECT_EQ(get(**live).substr(0, content.size()), content);
}

// The daemon is killed when the stub has its bound, but the parts are still long.
TEST_F(LiveFileTest, ATruncationTakesEffectWithTheStub) {
  const std::string content = random_bytes(kDeviceCount * kDepth * 3);
  make(content);
  std::vector<uint64_t> sizes;
  for (uint32_t d = 0; d < kDeviceCount; ++d) sizes.push_back(stat_of(part_of("f", d)).st_size);
  ASSERT_TRUE(opened()->resize(5'000));
  for (uint32_t d = 1; d < kDeviceCount; ++d) {
    ASSERT_EQ(::truncate(part_of("f", d).c_str(), static_cast<off_t>(sizes[d])), 0);
  }
  auto live = opened();
  EXPECT_EQ(live->size(), 5'000u);
  expect_exact_parts(*live);
  put(*live, 20'000, "and longer again");
  live = nullptr;
  EXPECT_EQ(opened()->size(), 20'016u);
}

TEST_F(LiveFileTest, AFailedWriteLeavesNoTail) {
  make(random_bytes(10'000));
  const auto live = opened();
  const ByteRange range{.offset = 10'000, .length_bytes = 50'000};
  const std::string bytes = random_bytes(50'000);
  {
    LiveFile::Write write(*live, range);
    ASSERT_TRUE(write.begin());
    ASSERT_EQ(lanes_->write(live->writable(), range, bytes.data(), false), 0);
    write.end(range.offset + 7);  // reports that the rest failed
  }
  EXPECT_EQ(live->size(), 10'007u);
  expect_exact_parts(*live);
}

// Otherwise the write in flight would extend a part again, unnoticed.
TEST_F(LiveFileTest, ATruncationWaitsForAWriteInPlace) {
  make(random_bytes(50'000));
  const auto live = opened();
  const ByteRange range{.offset = 30'000, .length_bytes = 10'000};
  const std::string bytes = random_bytes(range.length_bytes);
  LiveFile::Write write(*live, range);
  ASSERT_TRUE(write.begin());
  std::future<Result<void>> cut = std::async(std::launch::async, [&] { return live->resize(5); });
  EXPECT_EQ(cut.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  put(*live, 0, "on it");  // in flight before the new end
  EXPECT_EQ(lanes_->write(live->writable(), range, bytes.data(), false), 0);
  write.end(range.end());
  EXPECT_TRUE(cut.get());
  EXPECT_EQ(live->size(), 5u);
  expect_exact_parts(*live);
}

TEST_F(LiveFileTest, MovingDataIsNotSupported) {
  make(random_bytes(10'000));
  const auto live = opened();
  for (const int mode : {FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE}) {
    const Result<void> done = live->allocate(mode, {0, 4096});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, EOPNOTSUPP);
  }
}

TEST_F(LiveFileTest, SeeksDataAndHolesOverAllParts) {
  make(std::string(1, 'a'));
  const auto live = opened();
  const uint64_t far = 40 * kDepth;
  put(*live, far, "z");
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, kDepth, far - 1, far}) {
    const Result<uint64_t> data = live->file()->seek(offset, SEEK_DATA);
    ASSERT_TRUE(data);
    EXPECT_TRUE(*data == offset || *data <= far) << offset;
    const Result<uint64_t> hole = live->file()->seek(offset, SEEK_HOLE);
    ASSERT_TRUE(hole);
    EXPECT_GE(*hole, offset);
    EXPECT_LE(*hole, live->size());
  }
  EXPECT_EQ(live->file()->seek(0, SEEK_DATA).value(), 0u);
  EXPECT_EQ(live->file()->seek(far, SEEK_HOLE).value(), far + 1);
  const Result<uint64_t> behind = live->file()->seek(far + 1, SEEK_DATA);
  ASSERT_FALSE(behind);
  EXPECT_EQ(behind.error().code, ENXIO);
}

}  // namespace
}  // namespace graphlane
