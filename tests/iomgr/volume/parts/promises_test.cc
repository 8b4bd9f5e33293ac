#include "iomgr/volume/parts/promises.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "iomgr/volume/parts/unwritten.h"

namespace graphlane {
namespace {

constexpr uint64_t kUnitBytes = 16384;

// An unnamed file on the filesystem of the tests.
Fd make_file() {
  return Fd(::open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
}

void write_bytes(int fd, uint64_t offset, uint64_t length) {
  const std::string bytes(length, 'x');
  ASSERT_EQ(::pwrite(fd, bytes.data(), length, static_cast<off_t>(offset)),
            static_cast<ssize_t>(length));
}

// ext4 may leave an append so after a power failure: the size, and blocks that were never written.
bool leave_unwritten(int fd, uint64_t offset, uint64_t length) {
  if (::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(length)) != 0) return false;
  return first_unwritten(fd, offset, offset + length) == offset;
}

class FirstUnwrittenTest : public testing::Test {
 protected:
  void SetUp() override {
    const Fd probe = make_file();
    if (!probe || !leave_unwritten(probe.get(), 0, kBlockSize)) {
      GTEST_SKIP() << "the filesystem tells no unwritten extents";
    }
  }
};

TEST_F(FirstUnwrittenTest, FindsTheEndOfTheWrittenBytes) {
  const Fd file = make_file();
  write_bytes(file.get(), 0, 8192);
  EXPECT_EQ(first_unwritten(file.get(), 0, 8192), 8192u)
      << "what is in the page cache counts as written";
  ASSERT_TRUE(leave_unwritten(file.get(), 8192, 65536));
  EXPECT_EQ(first_unwritten(file.get(), 0, 73728), 8192u);
  EXPECT_EQ(first_unwritten(file.get(), 12288, 73728), 12288u) << "from there on";
  EXPECT_EQ(first_unwritten(file.get(), 0, 8192), 8192u) << "nothing behind the end counts";
  const Fd place(
      ::open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_PATH | O_CLOEXEC));
  EXPECT_EQ(first_unwritten(place.get(), 0, 73728), 8192u);
}

TEST_F(FirstUnwrittenTest, AProgramsHoleIsKept) {
  const Fd file = make_file();
  write_bytes(file.get(), 1 << 20, 4096);
  EXPECT_EQ(first_unwritten(file.get(), 0, (1 << 20) + 4096), (1u << 20) + 4096u);
}

TEST_F(FirstUnwrittenTest, GoesThroughMoreExtentsThanOneCallTells) {
  const Fd file = make_file();
  for (uint64_t i = 0; i < 100; ++i) write_bytes(file.get(), i * 8192, 4096);
  ASSERT_TRUE(leave_unwritten(file.get(), 100 * 8192, 4096));
  EXPECT_EQ(first_unwritten(file.get(), 0, 100 * 8192 + 4096), 100u * 8192);
}

// An open file of five units on two devices. The last two units were never written.
class LookAtOpenTest : public FirstUnwrittenTest {
 protected:
  void SetUp() override {
    FirstUnwrittenTest::SetUp();
    if (IsSkipped()) return;
    for (uint32_t d = 0; d < 2; ++d) {
      files_[d] = make_file();
      fds_[d] = files_[d].get();
    }
    write_bytes(fds_[0], 0, 2 * kUnitBytes);
    write_bytes(fds_[1], 0, kUnitBytes);
    ASSERT_TRUE(leave_unwritten(fds_[0], 2 * kUnitBytes, kUnitBytes));
    ASSERT_TRUE(leave_unwritten(fds_[1], kUnitBytes, kUnitBytes));
  }

  void record(uint64_t synced, uint32_t boot_tag, uint8_t flags = 0) {
    for (uint32_t d = 0; d < 2; ++d) {
      const PartRecord record{.flags = flags,
                              .ordinal = d,
                              .geometry = geometry_,
                              .stub = {.inode = 5, .born = 6},
                              .synced_bytes = synced,
                              .closed_bytes = 0,
                              .boot_tag = boot_tag};
      ASSERT_EQ(write_part_record(fds_[d], parts().of(d), record), 0);
    }
  }
  OpenPartsOf parts() const {
    return {.parts = fds_, .roots = {}, .volume = {}, .file_id = {}, .geometry = geometry_};
  }
  OpenSize look() const {
    return look_at_open({.volume = {},
                         .file_id = {},
                         .geometry = geometry_,
                         .logical_size = kNoBound,
                         .state = FileState::kOpen},
                        parts());
  }

  const StripeGeometry geometry_{
      .stripe_depth_bytes = kUnitBytes, .device_count = 2, .first_device = 0};
  const uint32_t other_boot_ = boot_tag_now() ^ 1;
  std::array<Fd, 2> files_;
  std::array<int, 2> fds_;
};

TEST_F(LookAtOpenTest, AfterAPowerFailureWhatWasNeverWrittenIsNoPartOfTheFile) {
  record(0, other_boot_);
  EXPECT_EQ(look().bytes, 3 * kUnitBytes);
  EXPECT_TRUE(look().is_cut);
  EXPECT_FALSE(look().is_damaged());
}

TEST_F(LookAtOpenTest, SyncedBytesAreNeverCut) {
  record(4 * kUnitBytes, other_boot_);
  EXPECT_EQ(look().bytes, 4 * kUnitBytes);
  record(5 * kUnitBytes, other_boot_);
  EXPECT_EQ(look().bytes, 5 * kUnitBytes);
  EXPECT_FALSE(look().is_cut);
}

TEST_F(LookAtOpenTest, NothingIsCutWithinOneBoot) {
  record(0, boot_tag_now());
  EXPECT_EQ(look().bytes, 5 * kUnitBytes);
}

TEST_F(LookAtOpenTest, AllocatedBlocksBelongToTheFile) {
  record(0, other_boot_, PartRecord::kAllocated);
  EXPECT_EQ(look().bytes, 5 * kUnitBytes);
}

TEST_F(LookAtOpenTest, AWriterOfThisBootEndsTheCut) {
  record(0, other_boot_);
  for (uint32_t d = 0; d < 2; ++d) {
    ASSERT_EQ(
        ::ftruncate(fds_[d], static_cast<off_t>(StripeMap(geometry_).part_size(d, 3 * kUnitBytes))),
        0);
  }
  promise_closed(parts(), 3 * kUnitBytes);
  ASSERT_TRUE(leave_unwritten(fds_[1], kUnitBytes, kUnitBytes));
  EXPECT_EQ(look().bytes, 4 * kUnitBytes);
}

}  // namespace
}  // namespace graphlane
