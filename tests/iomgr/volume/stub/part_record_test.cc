#include "iomgr/volume/stub/part_record.h"

#include <gtest/gtest.h>

#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

const Uuid kRecordVolume = *Uuid::parse("5b65bcb6b8b04876ae010d1a8f1de632");
const Uuid kRecordFile = *Uuid::parse("34b9f69a10a74cc69a4732badcc81114");

PartRecord sample_record() {
  return {.flags = PartRecord::kNew | PartRecord::kSummed,
          .ordinal = 2,
          .geometry = {.stripe_depth_bytes = 65536, .device_count = 3, .first_device = 1},
          .generation = 7,
          .stub = {.inode = 0x1122334455667788, .born = 1'796'000'000'123'456'789},
          .synced_bytes = 2'097'152,
          .closed_bytes = 2'097'153,
          .boot_tag = 0xfeedbeef,
          .sum = 0x12345678};
}

TEST(PartRecordTest, EncodesAndDecodesEveryField) {
  PartRecord decoded;
  const PartRecordBytes bytes = encode_part_record(sample_record(), kRecordVolume, kRecordFile);
  EXPECT_EQ(decode_part_record(bytes, kRecordVolume, kRecordFile, &decoded),
            RecordVerdict::kRecord);
  EXPECT_EQ(decoded, sample_record());
}

TEST(PartRecordTest, TheLargestFieldsFit) {
  PartRecord largest{
      .flags = 0xff,
      .ordinal = 63,
      .geometry = {.stripe_depth_bytes = kStripeDepthMax, .device_count = 64, .first_device = 63},
      .generation = UINT32_MAX,
      .stub = {.inode = UINT64_MAX, .born = INT64_MIN},
      .synced_bytes = INT64_MAX,
      .closed_bytes = INT64_MAX,
      .boot_tag = UINT32_MAX,
      .sum = UINT32_MAX};
  PartRecord decoded;
  const PartRecordBytes bytes = encode_part_record(largest, kRecordVolume, kRecordFile);
  EXPECT_EQ(decode_part_record(bytes, kRecordVolume, kRecordFile, &decoded),
            RecordVerdict::kRecord);
  EXPECT_EQ(decoded, largest);
}

TEST(PartRecordTest, EveryFlippedBitIsNoticed) {
  const PartRecordBytes good = encode_part_record(sample_record(), kRecordVolume, kRecordFile);
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    PartRecordBytes bytes = good;
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    PartRecord decoded;
    EXPECT_NE(decode_part_record(bytes, kRecordVolume, kRecordFile, &decoded),
              RecordVerdict::kRecord)
        << "bit " << bit;
  }
}

TEST(PartRecordTest, AnotherFilesOrVolumesIsNotTaken) {
  const PartRecordBytes bytes = encode_part_record(sample_record(), kRecordVolume, kRecordFile);
  PartRecord decoded;
  EXPECT_EQ(decode_part_record(bytes, kRecordVolume, kRecordVolume, &decoded),
            RecordVerdict::kBadChecksum);
  EXPECT_EQ(decode_part_record(bytes, kRecordFile, kRecordFile, &decoded),
            RecordVerdict::kBadChecksum);
}

TEST(PartRecordTest, VerdictsHaveDescriptions) {
  const PartRecordBytes good = encode_part_record(sample_record(), kRecordVolume, kRecordFile);
  PartRecord decoded;
  EXPECT_EQ(decode_part_record({}, kRecordVolume, kRecordFile, &decoded), RecordVerdict::kNone);
  EXPECT_EQ(decode_part_record({good.data(), 59}, kRecordVolume, kRecordFile, &decoded),
            RecordVerdict::kBadLength);
  PartRecordBytes later = good;
  later[0] = 2;
  EXPECT_EQ(decode_part_record(later, kRecordVolume, kRecordFile, &decoded),
            RecordVerdict::kBadVersion);
}

TEST(PartRecordTest, ImpossibleFieldsAreRefused) {
  const auto verdict_of = [](const PartRecord& record) {
    PartRecord decoded;
    return decode_part_record(encode_part_record(record, kRecordVolume, kRecordFile), kRecordVolume,
                              kRecordFile, &decoded);
  };
  PartRecord record = sample_record();
  record.ordinal = 3;  // of N = 3
  EXPECT_EQ(verdict_of(record), RecordVerdict::kBadField);
  record = sample_record();
  record.geometry.first_device = 3;
  EXPECT_EQ(verdict_of(record), RecordVerdict::kBadField);
  record = sample_record();
  record.geometry.stripe_depth_bytes = 0;
  EXPECT_EQ(verdict_of(record), RecordVerdict::kBadField);
  record = sample_record();
  record.synced_bytes = uint64_t{INT64_MAX} + 1;
  EXPECT_EQ(verdict_of(record), RecordVerdict::kBadField);
}

// A part with its record on a filesystem of the tests' own.
class PartRecordIoTest : public VolumeFixture {
 protected:
  void SetUp() override {
    VolumeFixture::SetUp();
    std::filesystem::create_directories(
        path(std::string(PartDirectory(PartName(kRecordFile)).c_str())));
    root_ = Fd(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    part_ = Fd(
        ::openat(root_.get(), PartName(kRecordFile).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(part_);
    which_ = {.root_fd = root_.get(), .volume = kRecordVolume, .file_id = kRecordFile};
  }

  Fd root_, part_;
  PartOf which_;
};

TEST_F(PartRecordIoTest, AnEmptyPartHasNoRecord) {
  PartRecord record;
  const Result<RecordVerdict> verdict = read_part_record(part_.get(), which_, &record);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(*verdict, RecordVerdict::kNone);
}

TEST_F(PartRecordIoTest, ReadsBackWhatItWrote) {
  ASSERT_EQ(write_part_record(part_.get(), which_, sample_record()), 0);
  ASSERT_EQ(sync_part_record(part_.get(), which_), 0);
  PartRecord record;
  ASSERT_EQ(read_part_record(part_.get(), which_, &record).value_or(RecordVerdict::kNone),
            RecordVerdict::kRecord);
  EXPECT_EQ(record, sample_record());
  // Reads by a place only, too.
  const Fd place(::openat(root_.get(), PartName(kRecordFile).c_str(), O_PATH | O_CLOEXEC));
  const Result<PartSeen> seen = look_at_part(place.get(), which_);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->record, sample_record());
  EXPECT_EQ(seen->uid, ::geteuid());
}

TEST_F(PartRecordIoTest, AnInodeIsToldFromItsCopyAndKeptByARename) {
  write(path("stub"), "x");
  const auto identity_of = [&](const std::string& name) {
    const Fd fd(::open(path(name).c_str(), O_RDONLY | O_CLOEXEC));
    const Result<StubSeen> seen = identify_stub(fd.get());
    EXPECT_TRUE(seen);
    return seen ? seen->identity : StubIdentity{};
  };
  const StubIdentity first = identity_of("stub");
  EXPECT_NE(first.inode, 0u);
  std::filesystem::copy_file(path("stub"), path("copy"));
  EXPECT_FALSE(is_identity(first, identity_of("copy")));
  std::filesystem::rename(path("stub"), path("moved"));
  EXPECT_TRUE(is_identity(first, identity_of("moved")));
}

TEST_F(PartRecordIoTest, TheBootHasATag) {
  EXPECT_NE(boot_tag_now(), 0u);
  EXPECT_EQ(boot_tag_now(), boot_tag_now());
}

}  // namespace
}  // namespace graphlane
