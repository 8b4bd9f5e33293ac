#include "adapters/share/wire/layout.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace graphlane::share {
namespace {

const FileIdentity kFile{.device = 1, .inode = 2, .size_bytes = 80, .modified_ns = 3};

Layout good() {
  return {.by_loader = false,
          .partition_count = 3,
          .record = {8, 0},
          .vertex_count = 10,
          .ranges = {{0, 0, 0, 16}, {0, 0, 40, 8}, {2, 0, 16, 24}}};
}

TEST(LayoutTest, RoundTripsThroughBytes) {
  const Layout layout = good();
  const std::string bytes = layout.to_bytes();
  const auto back = Layout::from_bytes(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->to_bytes(), bytes);
  EXPECT_EQ(partition_sizes(*back), (std::vector<uint64_t>{24, 0, 24}));
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(Layout::from_bytes(std::string_view(bytes).substr(0, length))) << length;
  }
}

struct BadLayout {
  const char* name;
  void (*spoil)(Layout&);
  const char* reason;
};

class BadLayoutTest : public testing::TestWithParam<BadLayout> {};

TEST_P(BadLayoutTest, IsRefusedInOneLine) {
  Layout layout = good();
  ASSERT_TRUE(check(layout, {&kFile, 1}));
  GetParam().spoil(layout);
  const auto checked = check(layout, {&kFile, 1});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().text, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, BadLayoutTest,
    testing::Values(BadLayout{"NoPartition", [](Layout& l) { l.partition_count = 0; },
                              "0 partitions: 1 to 1048576 are possible"},
                    BadLayout{"Backwards",
                              [](Layout& l) {
                                l.ranges[2].partition = 0;
                                l.ranges[1].partition = 1;
                              },
                              "a range of partition 0 follows one of partition 1 of 3"},
                    BadLayout{"BeyondTheLast", [](Layout& l) { l.ranges[2].partition = 3; },
                              "a range of partition 3 follows one of partition 0 of 3"},
                    BadLayout{"NoSuchFile", [](Layout& l) { l.ranges[0].file = 1; },
                              "partition 0: file 1 of 1"},
                    BadLayout{"BeyondTheFile", [](Layout& l) { l.ranges[2].offset = 64; },
                              "partition 2: 24 bytes at 64 of a file that has 80"},
                    BadLayout{
                        "Overflow", [](Layout& l) { l.ranges[2].length_bytes = UINT64_MAX; },
                        "partition 2: 18446744073709551615 bytes at 16 of a file that has 80"},
                    BadLayout{"PartOfAnEdge", [](Layout& l) { l.ranges[2].length_bytes = 23; },
                              "partition 2: 23 bytes are not whole edges of 8"},
                    BadLayout{"SourceOutside", [](Layout& l) { l.record.source_offset_bytes = 5; },
                              "a source at byte 5 is not within an edge of 8 bytes"}),
    [](const auto& row) { return std::string(row.param.name); });

// A sparse file allows such sizes. Their sum was 0 modulo 2^64: a partition that fits any budget.
TEST(LayoutTest, RejectsSizesBeyond64Bits) {
  constexpr uint64_t kBytes = uint64_t{1} << 62;
  const FileIdentity sparse{.device = 1, .inode = 2, .size_bytes = kBytes, .modified_ns = 3};
  Layout layout = good();
  layout.ranges = {{0, 0, 0, kBytes}, {0, 0, 0, kBytes}, {0, 0, 0, kBytes}};
  EXPECT_TRUE(check(layout, {&sparse, 1}));
  for (const uint32_t partition : {0u, 2u}) {
    layout.ranges.resize(3);
    layout.ranges.push_back({partition, 0, 0, kBytes});
    const auto checked = check(layout, {&sparse, 1});
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().text,
              fmt::format("partition {}: with it the graph has 2^64 bytes or more", partition));
  }
}

TEST(IdentifyTest, NeedsARegularFileOpenForReading) {
  const Fd path(::open("/proc/self/exe", O_PATH | O_CLOEXEC));
  const Fd device(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd program(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(identify(path.get()).error().code, EBADF);
  EXPECT_EQ(identify(device.get()).error().code, EBADF);
  EXPECT_EQ(identify(-1).error().code, EBADF);
  EXPECT_TRUE(identify(program.get()));
}

TEST(IdentityTest, AFileWithTheInodeNumberOfADeletedOneIsAnother) {
  const std::string path = ::testing::TempDir() + "identity";
  const auto identity = [&path] {
    const Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    const Result<FileIdentity> found = identify(file.get());
    EXPECT_TRUE(found);
    return *found;
  };
  const FileIdentity first = identity();
  EXPECT_EQ(first.born_ns, identity().born_ns) << "truncated, not made anew";
  ASSERT_EQ(::unlink(path.c_str()), 0);
  const FileIdentity second = identity();
  ASSERT_EQ(::unlink(path.c_str()), 0);
  EXPECT_FALSE(first == second);
  if (first.born_ns != 0) {
    EXPECT_GT(second.born_ns, first.born_ns);
  }
}

}  // namespace
}  // namespace graphlane::share
