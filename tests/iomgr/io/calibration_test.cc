#include "iomgr/io/calibration.h"

#include "iomgr/io/io_queue.h"
#include "iomgr/io/lanes.h"
#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

constexpr Calibration kMeasured{
    .depth = 8, .stream_count = 2, .bytes_per_second = 210'000'000, .small_ios_per_second = 90'000};

class CalibrationTest : public VolumeFixture {
 protected:
  void SetUp() override {
    VolumeFixture::SetUp();
    create_volume();
  }
  const Device& device() const { return volume_->devices()[1]; }
  std::string file() const { return device().root + "/" + kDeviceJson; }
  void keep(const Calibration& calibration) const {
    const auto text = with_calibration(read(file()), file(), calibration);
    ASSERT_TRUE(text) << text.error().text;
    write(file(), *text);
  }
};

TEST_F(CalibrationTest, TheUserOverridesTheCalibration) {
  keep(kMeasured);
  const auto asked = lane_depth(device(), 3);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->io_count, 3u);
  EXPECT_EQ(asked->source, LaneDepth::kUser);
  EXPECT_EQ(lane_depth(device(), kQueueDepthMax + 1).error().text, "depth 65: at most 64");
}

TEST_F(CalibrationTest, CalibrationOverridesTheKindOfDevice) {
  const auto before = lane_depth(device(), 0);
  ASSERT_TRUE(before);
  EXPECT_TRUE(before->source == LaneDepth::kDisk || before->source == LaneDepth::kDefault);
  keep(kMeasured);
  const auto after = lane_depth(device(), 0);
  ASSERT_TRUE(after) << after.error().text;
  EXPECT_EQ(after->io_count, 8u);
  EXPECT_EQ(after->source, LaneDepth::kCalibration);
  EXPECT_EQ(lane_depth(volume_->devices()[0], 0)->source, before->source) << "another device's";
}

TEST_F(CalibrationTest, KeepsUnknownMembers) {
  std::string text = read(file());
  text.replace(text.find('}'), 1, ", \"later\": {\"a\": [1, \"é\"]}}");
  const auto once = with_calibration(text, file(), {.depth = 1, .stream_count = 1});
  ASSERT_TRUE(once) << once.error().text;
  const auto twice = with_calibration(*once, file(), kMeasured);
  ASSERT_TRUE(twice) << twice.error().text;
  EXPECT_NE(twice->find("é"), std::string::npos);
  const auto parsed = parse_calibration(*twice, file());
  ASSERT_TRUE(parsed && *parsed);
  EXPECT_EQ((*parsed)->depth, 8u);
  EXPECT_EQ((*parsed)->stream_count, 2u);
  EXPECT_EQ((*parsed)->bytes_per_second, 210'000'000u);
  EXPECT_EQ((*parsed)->small_ios_per_second, 90'000u);
  write(file(), *twice);
  EXPECT_TRUE(Volume::open(path("vol"))) << "of format 1 still";
}

TEST_F(CalibrationTest, ADamagedFileIsNamed) {
  for (const char* wrong :
       {"7", "{}",
        R"({"depth": 0, "streams": 1, "bytes_per_second": 1, "small_ios_per_second": 1})",
        R"({"depth": 65, "streams": 1, "bytes_per_second": 1, "small_ios_per_second": 1})",
        R"({"depth": "8", "streams": 1, "bytes_per_second": 1, "small_ios_per_second": 1})",
        R"({"depth": 8, "bytes_per_second": 1, "small_ios_per_second": 1})"}) {
    write(file(), std::string("{\"calibration\": ") + wrong + "}");
    const auto depth = lane_depth(device(), 0);
    ASSERT_FALSE(depth) << wrong;
    EXPECT_EQ(depth.error().text,
              file() + ": damaged: \"calibration\" is wrong (graphlane calibrate makes it anew)");
  }
  EXPECT_FALSE(Lanes::start(*volume_, {}));
  EXPECT_TRUE(Lanes::start(*volume_, {.depth = 4})) << "a given depth needs none";
  const auto lazy = Lanes::start(*volume_, {.at_first_request = true});
  ASSERT_TRUE(lazy);
  const StripeMap map({.stripe_depth_bytes = 4096, .device_count = 2});
  const PartFiles parts;
  EXPECT_EQ((*lazy)->run({.map = map, .parts = parts, .pieces = {}}), EIO)
      << "the first request finds it";
  write(file(), "{\"calib");
  EXPECT_EQ(lane_depth(device(), 0).error().text,
            file() + ": not valid JSON (cut short or damaged)");
}

}  // namespace
}  // namespace graphlane
