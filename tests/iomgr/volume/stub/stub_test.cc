#include "iomgr/volume/stub/stub.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "iomgr/base/crc32c.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"

namespace graphlane {
namespace {

Layout sample_layout() {
  return {.volume = Uuid::random(),
          .file_id = Uuid::random(),
          .geometry = {.stripe_depth_bytes = 1 << 20, .device_count = 4, .first_device = 3},
          .logical_size = 123456789,
          .state = FileState::kClosed,
          .codec = Codec::kNone,
          .format = kStubFormat,
          .identity = {.inode = 0x0102030405060708, .born = 1'796'000'000'123'456'789},
          .generation = 0xfffffffe,
          .is_new = true};
}

TEST(StubTest, DecodesWhatItEncoded) {
  const Layout layout = sample_layout();
  Layout decoded;
  EXPECT_EQ(decode_stub(encode_stub(layout), &decoded), StubVerdict::kStub);
  EXPECT_EQ(decoded, layout);
}

// Bytes 80 on are ff there: no inode, and no generation.
TEST(StubTest, AStubOfFormat1NamesNoInode) {
  Layout layout = sample_layout();
  layout.format = kStubFormatUnbound;
  layout.identity = {};
  layout.generation = 0;
  layout.is_new = false;
  const StubBytes bytes = encode_stub(layout);
  for (size_t at = 80; at < 128; ++at) EXPECT_EQ(bytes[at], 0xff) << at;
  Layout decoded;
  EXPECT_EQ(decode_stub(bytes, &decoded), StubVerdict::kStub);
  EXPECT_EQ(decoded, layout);
}

TEST(StubTest, RefusesAStubWithAnyOneBitFlipped) {
  const StubBytes good = encode_stub(sample_layout());
  for (size_t bit = 0; bit < kStubSize * 8; ++bit) {
    StubBytes bytes = good;
    bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] ^ (1u << bit % 8));
    Layout decoded;
    ASSERT_EQ(decode_stub(bytes, &decoded), StubVerdict::kBadChecksum) << "bit " << bit;
  }
}

TEST(StubTest, KnowsAStubThatWasCutShort) {
  const StubBytes good = encode_stub(sample_layout());
  for (const size_t length : {8u, 80u, 4095u}) {
    Layout decoded;
    EXPECT_EQ(decode_stub({good.data(), length}, &decoded), StubVerdict::kCutShort) << length;
  }
}

TEST(StubTest, TakesOrdinaryFilesForOrdinary) {
  Layout decoded;
  EXPECT_EQ(decode_stub({}, &decoded), StubVerdict::kNotAStub);
  const std::vector<uint8_t> zeros(kStubSize, 0);
  EXPECT_EQ(decode_stub(zeros, &decoded), StubVerdict::kNotAStub);
}

// Rewrites a field and the checksum, as a later version or a bug would.
StubVerdict verdict_with(size_t offset, uint32_t value) {
  StubBytes bytes = encode_stub(sample_layout());
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  const uint32_t checksum = crc32c(bytes.data(), kStubSize - 4);
  std::memcpy(bytes.data() + kStubSize - 4, &checksum, sizeof checksum);
  Layout decoded;
  return decode_stub(bytes, &decoded);
}

TEST(StubTest, RejectsImpossibleFields) {
  EXPECT_EQ(verdict_with(8, 3), StubVerdict::kBadVersion);
  EXPECT_EQ(verdict_with(48, 4097), StubVerdict::kBadField);  // S
  EXPECT_EQ(verdict_with(48, 0), StubVerdict::kBadField);
  EXPECT_EQ(verdict_with(56, 1), StubVerdict::kBadField);  // N
  EXPECT_EQ(verdict_with(60, 4), StubVerdict::kBadField);  // f
  EXPECT_EQ(verdict_with(72, 3), StubVerdict::kBadField);  // state
  EXPECT_EQ(verdict_with(76, 1), StubVerdict::kBadField);  // codec
}

TEST(StubTest, EveryWordThatIsNotAFieldReadsAsNoVertex) {
  const StubBytes bytes = encode_stub(sample_layout());
  for (size_t at = 2048; at < 4080; at += 4) {
    int32_t vertex;
    std::memcpy(&vertex, bytes.data() + at, sizeof vertex);
    ASSERT_EQ(vertex, -1) << "offset " << at;
  }
}

// A program may hold the stub open with O_DIRECT, which needs aligned memory. dd iflag=direct once
// read the stub's own bytes.
TEST(StubTest, IsReadThroughADirectDescriptor) {
  const std::string path = ::testing::TempDir() + "stub_direct_" + std::to_string(getpid());
  const Layout layout = sample_layout();
  {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    const StubBytes bytes = encode_stub(layout);
    ASSERT_TRUE(write_full(fd.get(), bytes.data(), bytes.size()));
  }
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECT));
  ::unlink(path.c_str());
  if (!fd) GTEST_SKIP() << "not applicable: no O_DIRECT in " << ::testing::TempDir();
  Layout decoded;
  const Result<StubVerdict> verdict = read_stub(fd.get(), kStubSize, &decoded);
  ASSERT_TRUE(verdict) << verdict.error().code;
  EXPECT_EQ(*verdict, StubVerdict::kStub);
  EXPECT_EQ(decoded, layout);
}

// The kernel copies a page to a reader while a writer changes it. Without a second read, one in
// some thousand stubs was "damaged" on ext4.
TEST(StubTest, IsWholeWhileItIsRewritten) {
  const std::string path = ::testing::TempDir() + "stub_torn_" + std::to_string(getpid());
  const Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
  ::unlink(path.c_str());
  const StubBytes contents[] = {encode_stub(sample_layout()), encode_stub(sample_layout())};
  ASSERT_TRUE(write_full(fd.get(), contents[0].data(), kStubSize));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; i ^= 1) {
      (void)pwrite_full(fd.get(), contents[i].data(), kStubSize, 0);
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  int damaged_count = 0;
  for (int i = 0; i < 100'000; ++i) {
    Layout layout;
    const Result<StubVerdict> verdict = read_stub(fd.get(), kStubSize, &layout);
    if (!verdict || *verdict != StubVerdict::kStub) ++damaged_count;
  }
  stop = true;
  writer.join();
  EXPECT_EQ(damaged_count, 0);
}

TEST(Crc32cTest, MatchesTheCheckValueOfItsDefinition) {
  const std::string digits = "123456789";  // RFC 3720, and every catalogue of CRCs
  EXPECT_EQ(crc32c(reinterpret_cast<const uint8_t*>(digits.data()), digits.size()), 0xe3069283u);
}

}  // namespace
}  // namespace graphlane
