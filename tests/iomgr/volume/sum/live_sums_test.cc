// A changing file keeps right checksums: none contradicts good data, whenever the writer dies, and
// none is computed from damaged data.
#include "iomgr/volume/sum/live_sums.h"

#include <fcntl.h>
#include <linux/falloc.h>

#include <random>

#include "iomgr/admin/scrub.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/volume/parts/live_file.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

constexpr uint64_t kSumsUnit = 16384;
constexpr uint32_t kSumsParts = 3;

class LiveSumsTest : public VolumeFixture {
 protected:
  void make(uint64_t size) {
    create_volume(kSumsParts, kSumsUnit);
    content_ = random_bytes(size);
    write(path("f"), content_);
    ASSERT_TRUE(import(path("f")));
    open();
  }

  void open() {
    Fd stub(::open(in_volume("f").c_str(), O_RDWR | O_CLOEXEC));
    auto live = LiveFile::open(*volume_, layout_of("f"), std::move(stub), "f");
    ASSERT_TRUE(live) << live.error().text;
    live_ = std::move(*live);
  }
  void close() {
    const uint64_t count = live_->change_count();
    ASSERT_TRUE(live_->sync(true));
    const auto closed = live_->close(count);
    ASSERT_TRUE(closed) << std::strerror(closed.error().code);
    live_.reset();
  }
  void die() { live_.reset(); }

  void put(uint64_t offset, std::string bytes) {
    const ByteRange range{.offset = offset, .length_bytes = bytes.size()};
    LiveFile::Write write(*live_, range);
    ASSERT_TRUE(write.begin());
    const Piece piece{.range = range, .buffer = bytes.data()};
    const PartRequest request{.map = live_->writable().map(),
                              .parts = live_->writable().parts(),
                              .size_bytes = range.end(),
                              .op = IoOp::kWrite,
                              .pieces = {&piece, 1}};
    RequestCutter cutter(request);
    for (LaneIo io; cutter.next(&io);) {
      ASSERT_EQ(::pwritev(io.fd, io.iov, static_cast<int>(io.iov_count),
                          static_cast<off_t>(io.part_offset)),
                static_cast<ssize_t>(io.length_bytes));
    }
    write.end(range.end());
  }

  SumCounts scrub() const {
    SumCounts all;
    Progress progress("scrub", 0);
    const ScrubFile file{.shown = "f", .layout = layout_of("f")};
    for (uint32_t d = 0; d < kSumsParts; ++d) {
      const PartScrub part = scrub_part(*volume_, file, d, &progress);
      problems_ += part.problems.size();
      for (const std::string& line : part.problems) last_problem_ = line;
      all.verified += part.blocks.verified;
      all.unverified += part.blocks.unverified;
      all.failed += part.blocks.failed;
    }
    return all;
  }
  void expect_all_verified(uint64_t size) const {
    const SumCounts counts = scrub();
    EXPECT_EQ(problems_, 0u) << last_problem_;
    EXPECT_EQ(counts.unverified, 0u);
    uint64_t blocks = 0;
    for (uint32_t d = 0; d < kSumsParts; ++d) {
      blocks += sum_block_count(layout_of("f").map().part_size(d, size));
    }
    EXPECT_EQ(counts.verified, blocks);
  }

  void flip(uint64_t offset) const {
    const PartLocation at = layout_of("f").map().locate(offset);
    const std::string part = part_of("f", at.device_index);
    const Fd fd(::open(part.c_str(), O_RDWR));
    char byte = 0;
    ASSERT_EQ(::pread(fd.get(), &byte, 1, static_cast<off_t>(at.part_offset)), 1);
    byte = static_cast<char>(byte ^ 1);
    ASSERT_EQ(::pwrite(fd.get(), &byte, 1, static_cast<off_t>(at.part_offset)), 1);
  }

  std::string content_;
  std::shared_ptr<LiveFile> live_;
  mutable size_t problems_ = 0;
  mutable std::string last_problem_;
};

constexpr uint64_t kSumsBytes = 600'123;

// The sums that were made before another process wanted the file hold. A later close goes on there.
TEST_F(LiveSumsTest, ACloseThatGivesWayKeepsWhatItHasDone) {
  make(kSumsBytes);
  const uint64_t size = kSumsBytes + (9 << 20);
  put(kSumsBytes, random_bytes(9 << 20, 3));
  const Fd other(::open(in_volume("f").c_str(), O_RDWR | O_CLOEXEC));
  live_->give_way();
  ASSERT_TRUE(lock_stub(other.get(), StubLock::kWanted, F_RDLCK));
  const uint64_t count = live_->change_count();
  ASSERT_TRUE(live_->sync(true));
  EXPECT_EQ(live_->close(count).error().code, EAGAIN);
  die();
  EXPECT_EQ(scrub().failed, 0u);
  ASSERT_TRUE(lock_stub(other.get(), StubLock::kWanted, F_UNLCK));
  open();
  close();
  expect_all_verified(size);
}

TEST_F(LiveSumsTest, InPlaceWritesAreUnverifiedUntilClose) {
  make(kSumsBytes);
  const uint32_t before = layout_of("f").generation;
  put(100'000, random_bytes(50'000, 2));
  const SumCounts during = scrub();
  EXPECT_EQ(during.failed, 0u);
  EXPECT_GT(during.unverified, 0u);
  close();
  EXPECT_EQ(layout_of("f").generation, before + 1);
  expect_all_verified(kSumsBytes);
}

TEST_F(LiveSumsTest, OpeningAloneChangesNothing) {
  make(kSumsBytes);
  EXPECT_FALSE(live_->needs_close());
  close();
  EXPECT_EQ(layout_of("f").generation, 0u);
  expect_all_verified(kSumsBytes);
}

TEST_F(LiveSumsTest, AppendedBytesGetTheirs) {
  make(kSumsBytes);
  put(kSumsBytes, random_bytes(300'001, 3));
  EXPECT_EQ(scrub().failed, 0u);
  close();
  expect_all_verified(kSumsBytes + 300'001);
}

TEST_F(LiveSumsTest, ATruncationAndWhatComesAfterIt) {
  make(kSumsBytes);
  ASSERT_TRUE(live_->resize(333'333));
  EXPECT_EQ(scrub().failed, 0u);
  ASSERT_TRUE(live_->resize(500'000));  // zeros
  EXPECT_EQ(scrub().failed, 0u);
  put(400'000, random_bytes(1000, 4));
  close();
  expect_all_verified(500'000);
}

TEST_F(LiveSumsTest, HolesThatArePunched) {
  make(kSumsBytes);
  ASSERT_TRUE(live_->allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                              {.offset = 50'000, .length_bytes = 200'000}));
  EXPECT_EQ(scrub().failed, 0u);
  close();
  expect_all_verified(kSumsBytes);
}

TEST_F(LiveSumsTest, ASmallFileGrowsAndShrinks) {
  make(100'000);
  put(10, "x");
  EXPECT_EQ(scrub().failed, 0u);
  close();
  expect_all_verified(100'000);
  open();
  put(100'000, random_bytes(400'000, 5));
  close();
  expect_all_verified(500'000);
  open();
  ASSERT_TRUE(live_->resize(70'001));
  close();
  expect_all_verified(70'001);
  open();
  put(70'001, random_bytes(300'000, 6));
  close();
  expect_all_verified(370'001);
}

TEST_F(LiveSumsTest, AWriterThatDiesLeavesNoSumThatContradictsGoodData) {
  make(kSumsBytes);
  std::mt19937_64 random(7);
  uint64_t size = kSumsBytes;
  for (int round = 0; round < 60; ++round) {
    for (uint64_t i = random() % 4; i > 0; --i) {
      const uint64_t at = random() % (size + 5000);
      const uint64_t length = 1 + random() % 40'000;
      switch (random() % 6) {
        case 0:
          size = random() % 800'000;
          ASSERT_TRUE(live_->resize(size));
          break;
        case 1:
          ASSERT_TRUE(live_->allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                      {.offset = at, .length_bytes = length}));
          break;
        default: put(at, random_bytes(length, random())); size = std::max(size, at + length);
      }
    }
    if (random() % 2 == 0) {
      close();
    } else {
      die();
    }
    ASSERT_EQ(scrub().failed, 0u) << "round " << round;
    ASSERT_EQ(problems_, 0u) << last_problem_ << ", round " << round;
    open();
  }
  close();
  expect_all_verified(size);
}

TEST_F(LiveSumsTest, UnwrittenBlocksKeepTheirSums) {
  make(kSumsBytes);
  flip(40'000);
  put(200'000, random_bytes(30'000, 8));
  close();
  EXPECT_EQ(scrub().failed, 1u);
}

TEST_F(LiveSumsTest, ADamagedBlockThatIsWrittenInPartStaysDamaged) {
  make(kSumsBytes);
  flip(40'000);
  put(40'100, "new");
  close();
  EXPECT_EQ(scrub().failed, 1u);
  open();
  put(40'200, "newer");
  close();
  EXPECT_EQ(scrub().failed, 1u);
  open();
  put(40'960 - 4096, random_bytes(4096, 9));  // the whole block
  close();
  problems_ = 0;
  expect_all_verified(kSumsBytes);
}

TEST_F(LiveSumsTest, ADamagedLastBlockThatIsAppendedToStaysDamaged) {
  make(kSumsBytes);
  flip(kSumsBytes - 1);
  put(kSumsBytes, random_bytes(100'000, 10));
  close();
  EXPECT_EQ(scrub().failed, 1u);
}

TEST_F(LiveSumsTest, ADamagedSmallPartThatIsWrittenStaysDamaged) {
  make(100'000);
  flip(5);
  put(100, "new");
  close();
  EXPECT_GT(scrub().failed, 0u);
}

TEST_F(LiveSumsTest, AWriteDuringAnUpdateStaysDirty) {
  make(kSumsBytes);
  const ByteRange range{.offset = 100'000, .length_bytes = 4096};
  LiveFile::Write under_way(*live_, range);
  ASSERT_TRUE(under_way.begin());
  put(300'000, random_bytes(5000, 11));
  const uint64_t count = live_->change_count();
  ASSERT_TRUE(live_->sync(true));
  ASSERT_TRUE(live_->close(count));
  flip(100'100);  // as the write does
  EXPECT_EQ(scrub().failed, 0u);
  under_way.end(range.end());
  EXPECT_TRUE(live_->needs_close());
  close();
  expect_all_verified(kSumsBytes);
}

TEST_F(LiveSumsTest, AFileWithoutChecksumsIsLeftSo) {
  make(kSumsBytes);
  live_.reset();
  const Layout layout = layout_of("f");
  for (uint32_t d = 0; d < kSumsParts; ++d) {
    const Fd fd(::open(part_of("f", d).c_str(), O_RDWR));
    const PartOf which = graphlane::part_of(volume_->devices()[d].root_fd.get(), layout);
    PartRecord record;
    ASSERT_EQ(*read_part_record(fd.get(), which, &record), RecordVerdict::kRecord);
    record.flags = 0;
    ASSERT_EQ(write_part_record(fd.get(), which, record), 0);
  }
  open();
  put(7, "x");
  close();
  EXPECT_EQ(scrub().verified, 0u);
  open();
  ASSERT_TRUE(live_->resize(0));
  put(0, random_bytes(400'000, 12));
  close();
  expect_all_verified(400'000);
}

}  // namespace
}  // namespace graphlane
