// A scrub reports every damaged byte with its file offset.
#include "iomgr/admin/scrub.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "iomgr/admin/check.h"
#include "iomgr/admin/restripe.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/volume/sum/verify.h"
#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

constexpr uint64_t kScrubDepth = 16384;
constexpr uint64_t kScrubSize = (1 << 20) + 1234;  // the last block of a part is short

class ScrubTest : public VolumeFixture {
 protected:
  void make(uint64_t size = kScrubSize) {
    create_volume(3, kScrubDepth);
    content_ = random_bytes(size);
    write(path("source"), content_);
    ASSERT_TRUE(import(path("source")));
    file_ = {.shown = "source", .layout = layout_of("source")};
  }

  std::string part(uint32_t d) const { return volume_->part_path(d, file_.layout.file_id); }
  std::string sums(uint32_t d) const {
    return volume_->devices()[d].root + "/" + PartSumName(file_.layout.file_id).c_str();
  }

  PartScrub scrub(uint32_t d) const {
    Progress progress("scrub", 0);
    return scrub_part(*volume_, file_, d, &progress);
  }

  // The problems of all parts, all of which must name this one.
  std::vector<std::string> problems_of(uint32_t d) const {
    for (uint32_t other = 0; other < 3; ++other) {
      if (other == d) continue;
      const auto others = scrub(other).problems;
      EXPECT_TRUE(others.empty()) << others.front();
    }
    return scrub(d).problems;
  }

  static void overwrite(const std::string& path, uint64_t offset, const std::string& bytes) {
    const Fd fd(::open(path.c_str(), O_WRONLY));
    ASSERT_TRUE(pwrite_full(fd.get(), bytes.data(), bytes.size(), offset));
  }
  static void flip(const std::string& path, uint64_t offset) {
    std::string one = read(path).substr(offset, 1);
    one[0] = static_cast<char>(one[0] ^ 4);
    overwrite(path, offset, one);
  }

  std::string content_;
  ScrubFile file_;
};

TEST_F(ScrubTest, AnImportedVolumePassesTheCheck) {
  make();
  SumCounts all;
  for (uint32_t d = 0; d < 3; ++d) {
    const PartScrub part = scrub(d);
    EXPECT_TRUE(part.has_sums);
    EXPECT_TRUE(part.problems.empty()) << part.problems.front();
    all.verified += part.blocks.verified;
    all.unverified += part.blocks.unverified;
  }
  EXPECT_EQ(all.verified, (kScrubSize + 4095) / 4096);
  EXPECT_EQ(all.unverified, 0u);
}

TEST_F(ScrubTest, ReportsAFlippedBitWithFileOffsetAndDevice) {
  make();
  // Unit 5 is the second one of its device.
  const PartLocation at = file_.layout.map().locate(5 * kScrubDepth + 4096 + 7);
  flip(part(at.device_index), at.part_offset);
  const auto problems = problems_of(at.device_index);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0], "source: bytes 86016 to 90111 do not match their checksums: device " +
                             path("d" + std::to_string(at.device_index)) + ", part " +
                             part(at.device_index) + " at 20480");
}

// The memory has other bytes than the device: one that erred once brought them.
TEST_F(ScrubTest, WrongBytesInMemoryGiveWayToThoseThatMatch) {
  make();
  const std::string right = read(part(1));
  for (const uint64_t at : {uint64_t{5 * kBlockSize + 7}, uint64_t{right.size() - 1}}) {
    std::string memory = right;
    memory[at] = static_cast<char>(memory[at] ^ 1);
    const PartOf of{.root_fd = volume_->device_roots()[1],
                    .volume = file_.layout.volume,
                    .file_id = file_.layout.file_id};
    const Fd fd(::open(part(1).c_str(), O_RDONLY));
    const Result<SumFile> sum_file = SumFile::open(of, fd.get(), 1, O_RDONLY);
    ASSERT_TRUE(sum_file);
    std::atomic<uint64_t> covered{right.size()};
    SumCounts counts;
    const iovec piece{.iov_base = memory.data(), .iov_len = memory.size()};
    EXPECT_EQ(verify_bytes(*sum_file, fd.get(), 0, {&piece, 1}, memory.size(), &covered, &counts,
                           nullptr),
              0);
    EXPECT_EQ(counts.failed, 0u);
    EXPECT_EQ(memory, right);
  }
}

TEST_F(ScrubTest, VerifiesTheLastBytes) {
  make();
  const PartLocation at = file_.layout.map().locate(kScrubSize - 1);
  flip(part(at.device_index), at.part_offset);
  EXPECT_EQ(problems_of(at.device_index).size(), 1u);
}

TEST_F(ScrubTest, DetectsZeroedMisplacedAndStaleBlocks) {
  make();
  const std::string before = read(part(1));
  overwrite(part(1), 8192, std::string(4096, '\0'));
  EXPECT_EQ(problems_of(1).size(), 1u);
  overwrite(part(1), 8192, before.substr(4096, 4096));
  EXPECT_EQ(problems_of(1).size(), 1u);
  overwrite(part(1), 8192, random_bytes(4096, 99));
  EXPECT_EQ(problems_of(1).size(), 1u);
  overwrite(part(1), 8192, before.substr(8192, 4096));
  EXPECT_TRUE(problems_of(1).empty());
}

TEST_F(ScrubTest, ReportsAdjacentBlocksTogether) {
  make();
  overwrite(part(0), 0, random_bytes(kScrubDepth, 99));
  EXPECT_EQ(problems_of(0).size(), 1u);
  EXPECT_EQ(scrub(0).blocks.failed, kScrubDepth / 4096);
}

TEST_F(ScrubTest, ReportsManyPlacesAsACount) {
  make();
  for (uint64_t at = 0; at < 80 * 4096; at += 8192) flip(part(0), at);
  const auto problems = problems_of(0);
  ASSERT_EQ(problems.size(), 17u);
  EXPECT_NE(problems.back().find("24 more places on "), std::string::npos);
}

// Each way to damage the checksums of part 1, and the message.
TEST_F(ScrubTest, DetectsDamagedChecksums) {
  make();
  const std::string good = read(sums(1)), foreign = read(sums(2));
  const auto put = [&](const std::string& bytes) { write(sums(1), bytes); };
  struct Damage {
    std::function<void()> damage;
    const char* told;
  };
  const Damage damages[] = {
      {[&] { std::filesystem::remove(sums(1)); }, "are missing"},
      {[&] {
         std::filesystem::remove(sums(1));
         ::mkfifo(sums(1).c_str(), 0600);
       },
       "are not a regular file"},
      {[&] {
         std::filesystem::remove(sums(1));
         std::filesystem::create_symlink(sums(2), sums(1));
       },
       "are not a regular file"},
      {[&] { put(foreign); }, "are another part's"},
      {[&] { put(""); }, "are damaged"},
      {[&] { put(good.substr(0, 5000)); }, "do not match"},
      {[&] { put(good.substr(0, kSumHeaderAt) + std::string(good.size() - kSumHeaderAt, '\0')); },
       "are damaged"},
      {[&] {
         put(good);
         std::filesystem::resize_file(sums(1), uint64_t{1} << 43);
       },
       "have 8796093022208 bytes"},
      {[&] {
         put(good);
         flip(sums(1), 100);
       },
       "are damaged at 100"},
      {[&] {
         put(good);
         flip(sums(1), kSumRegionsAt);
       },
       "are damaged at 8192"},
      {[&] {
         put(good);
         flip(sums(1), sum_at(3));
       },
       "bytes "},
  };
  for (const Damage& one : damages) {
    std::filesystem::remove(sums(1));
    put(good);
    one.damage();
    const auto problems = problems_of(1);
    ASSERT_FALSE(problems.empty()) << one.told;
    EXPECT_NE(problems[0].find(one.told), std::string::npos) << problems[0];
  }
  std::filesystem::remove(sums(1));
  put(good);
  EXPECT_TRUE(problems_of(1).empty());
}

TEST_F(ScrubTest, ATornHeaderLeavesTheOtherSlot) {
  make();
  const std::string good = read(sums(1));
  for (const uint64_t slot : {0, 1}) {
    write(sums(1), good);
    overwrite(sums(1), kSumHeaderAt + slot * kSumHeaderStride, std::string(20, 'x'));
    const PartScrub part = scrub(1);
    EXPECT_TRUE(part.problems.empty()) << part.problems.front();
    EXPECT_EQ(part.blocks.unverified, 0u);
  }
}

TEST_F(ScrubTest, DetectsTruncatedChecksums) {
  make();
  const PartOf which = graphlane::part_of(volume_->devices()[1].root_fd.get(), file_.layout);
  const SumFile file(Fd(::open(sums(1).c_str(), O_RDWR)), which, 1);
  SumHeader header;
  ASSERT_EQ(*file.read_header(&header), SumVerdict::kGood);
  header.covered_bytes = 8192;
  ASSERT_EQ(file.write_header(&header), 0);
  ASSERT_EQ(problems_of(1).size(), 1u);
  EXPECT_NE(problems_of(1)[0].find("end at 8192 of"), std::string::npos);
}

TEST_F(ScrubTest, DirtyRegionsAreUnverified) {
  make();
  overwrite(sums(1), kSumRegionsAt, std::string(1, static_cast<char>(kRegionDirty)));
  flip(part(1), 4096);
  const PartScrub part = scrub(1);
  EXPECT_TRUE(part.problems.empty()) << part.problems.front();
  EXPECT_EQ(part.blocks.failed, 0u);
  EXPECT_GT(part.blocks.unverified, 0u);
}

TEST_F(ScrubTest, DetectsStaleChecksums) {
  make();
  const Fd fd(::open(part(1).c_str(), O_RDWR));
  const PartOf which = graphlane::part_of(volume_->devices()[1].root_fd.get(), file_.layout);
  PartRecord record;
  ASSERT_EQ(*read_part_record(fd.get(), which, &record), RecordVerdict::kRecord);
  record.generation += 1;
  ASSERT_EQ(write_part_record(fd.get(), which, record), 0);
  ASSERT_EQ(problems_of(1).size(), 1u);
  EXPECT_NE(problems_of(1)[0].find("are of an older state"), std::string::npos);
}

TEST_F(ScrubTest, SmallPartsHaveTheirSumInTheRecord) {
  make(/*size=*/100'000);
  for (uint32_t d = 0; d < 3; ++d) {
    EXPECT_FALSE(std::filesystem::exists(sums(d)));
    EXPECT_TRUE(scrub(d).has_sums);
    EXPECT_TRUE(scrub(d).problems.empty());
  }
  flip(part(2), 77);
  ASSERT_EQ(problems_of(2).size(), 1u);
  EXPECT_NE(problems_of(2)[0].find("does not match its checksum"), std::string::npos);
}

TEST_F(ScrubTest, HolesAreHolesInTheChecksumsToo) {
  create_volume(3, kScrubDepth);
  const Fd fd(::open(path("sparse").c_str(), O_WRONLY | O_CREAT, 0600));
  ASSERT_EQ(::ftruncate(fd.get(), 1 << 30), 0);
  ASSERT_EQ(::pwrite(fd.get(), "end", 3, (1 << 30) - 3), 3);
  ASSERT_TRUE(import(path("sparse")));
  file_ = {.shown = "sparse", .layout = layout_of("sparse")};
  for (uint32_t d = 0; d < 3; ++d) EXPECT_LE(stat_of(sums(d)).st_blocks, 5 * 8);
  const PartLocation at = file_.layout.map().locate(512 << 20);
  overwrite(part(at.device_index), at.part_offset, "x");
  EXPECT_EQ(problems_of(at.device_index).size(), 1u);
}

TEST_F(ScrubTest, ARestripingWritesTheChecksumsOfItsNewParts) {
  make();
  const auto done =
      restripe_files(*volume_, {.path = "source", .stripe_depth_bytes = 4 * kScrubDepth});
  ASSERT_TRUE(done) << done.error().text;
  file_.layout = layout_of("source");
  for (uint32_t d = 0; d < 3; ++d) {
    EXPECT_TRUE(scrub(d).has_sums);
    EXPECT_EQ(scrub(d).blocks.unverified, 0u);
    EXPECT_TRUE(scrub(d).problems.empty());
  }
  flip(part(2), 9999);
  EXPECT_EQ(problems_of(2).size(), 1u);
}

TEST_F(ScrubTest, CheckReportsIt) {
  make();
  flip(part(0), 5);
  const auto report = check_volume(*volume_, {.scrub = true});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->problems.size(), 1u);
  EXPECT_EQ(report->scrubbed.failed, 1u);
  EXPECT_EQ(report->scrubbed.verified, (kScrubSize + 4095) / 4096 - 1);
}

}  // namespace
}  // namespace graphlane
