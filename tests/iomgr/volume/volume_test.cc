#include "iomgr/volume/volume.h"

#include "iomgr/volume/volume_json.h"
#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

namespace fs = std::filesystem;

TEST(StripePolicyTest, WithoutGlobsTakesEveryLargeFile) {
  const StripePolicy policy{.globs = {}, .size_min_bytes = 100};
  EXPECT_TRUE(policy.wants("anything", 100));
  EXPECT_FALSE(policy.wants("anything", 99));
}

TEST(StripePolicyTest, GlobsMatchTheWholeName) {
  const StripePolicy policy{.globs = {"column", "*.adj"}, .size_min_bytes = 0};
  EXPECT_TRUE(policy.wants("column", 1));
  EXPECT_TRUE(policy.wants("shard.0.adj", 1));
  EXPECT_FALSE(policy.wants("column_offset", 1));
}

TEST(StripePolicyTest, NeverTakesAnEmptyFile) {
  EXPECT_FALSE((StripePolicy{.globs = {}, .size_min_bytes = 0}.wants("a", 0)));
}

class VolumeTest : public VolumeFixture {
 protected:
  // The message of create() for wrong options. The attempt may leave nothing behind.
  std::string error_of(const VolumeOptions& options) {
    const auto before = all_paths();
    const auto created = Volume::create(options);
    EXPECT_FALSE(created);
    EXPECT_EQ(all_paths(), before) << "left something behind";
    return created ? "" : created.error().text;
  }

  VolumeOptions options(uint32_t device_count = 3) {
    return {.root = path("vol"), .devices = devices(device_count)};
  }

  std::string open_error() const {
    const auto opened = Volume::open(path("vol"));
    EXPECT_FALSE(opened);
    return opened ? "" : opened.error().text;
  }

  std::string device_json(uint32_t d) const { return volume_->devices()[d].root + "/device.json"; }
};

TEST_F(VolumeTest, AReopenedVolumeIsUnchanged) {
  create_volume(3, 64 << 10, {.globs = {"column", "r*w"}, .size_min_bytes = 12345});
  const auto again = Volume::open(path("vol"));
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ((*again)->uuid(), volume_->uuid());
  EXPECT_EQ((*again)->stripe_depth_bytes(), 64u << 10);
  EXPECT_EQ((*again)->policy().globs, (std::vector<std::string>{"column", "r*w"}));
  EXPECT_EQ((*again)->policy().size_min_bytes, 12345u);
  ASSERT_EQ((*again)->device_count(), 3u);
  EXPECT_EQ((*again)->devices()[1].directory, path("d1"));
}

TEST_F(VolumeTest, OtherUsersReachThePartsWhateverTheUmask) {
  const mode_t umask_before = ::umask(077);
  create_volume();
  ::umask(umask_before);
  EXPECT_EQ(stat_of(volume_->devices()[0].root).st_mode & 0777, 0755u);
  EXPECT_EQ(stat_of(volume_->devices()[0].root + "/parts").st_mode & 0777, 0711u);
  EXPECT_EQ(stat_of(device_json(0)).st_mode & 0777, 0644u);
  EXPECT_EQ(stat_of(in_volume(".graphlane/volume.json")).st_mode & 0777, 0644u);
}

TEST_F(VolumeTest, TakesAnEmptyDirectoryAsRoot) {
  fs::create_directory(path("vol"));
  create_volume();
}

TEST_F(VolumeTest, RefusesOneDevice) {
  EXPECT_EQ(error_of(options(1)), path("vol") + ": a volume needs at least two devices, not 1");
}

TEST_F(VolumeTest, RefusesAnImpossibleDepth) {
  VolumeOptions wrong = options();
  wrong.stripe_depth_bytes = 0;
  EXPECT_EQ(error_of(wrong), "stripe depth 0: must be at least 4096 bytes");
  wrong.stripe_depth_bytes = 5000;
  EXPECT_EQ(error_of(wrong), "stripe depth 5000: not a multiple of 4096 bytes");
  wrong.stripe_depth_bytes = kStripeDepthMax + kBlockSize;
  EXPECT_EQ(error_of(wrong), "stripe depth 1099511631872: larger than 1T");
}

TEST_F(VolumeTest, RefusesTheSameDirectoryTwiceAlsoByAnotherName) {
  VolumeOptions wrong = options();
  fs::create_directory_symlink(path("d0"), path("again"));
  wrong.devices.push_back(path("again"));
  EXPECT_EQ(error_of(wrong), path("again") + ": the same directory as device 0");
}

TEST_F(VolumeTest, RefusesADeviceThatIsMissingOrNoDirectory) {
  VolumeOptions wrong = options();
  wrong.devices.push_back(path("absent"));
  EXPECT_NE(error_of(wrong).find(path("absent") + ": cannot open the device"), std::string::npos);
  write(path("file"), "x");
  wrong.devices.back() = path("file");
  EXPECT_NE(error_of(wrong).find(path("file") + ": not a directory"), std::string::npos);
}

TEST_F(VolumeTest, RefusesDevicesAndVolumeInsideEachOther) {
  VolumeOptions wrong = options();
  wrong.root = path("d1/vol");
  EXPECT_EQ(error_of(wrong), path("d1") + ": device contains the volume " + path("d1/vol"));
  wrong = options();
  fs::create_directories(path("vol/d9"));
  wrong.devices.push_back(path("vol/d9"));
  EXPECT_EQ(error_of(wrong), path("vol/d9") + ": device lies inside the volume " + path("vol"));
}

TEST_F(VolumeTest, RefusesARootThatIsInUse) {
  VolumeOptions wrong = options();
  write(path("vol/file"), "mine");
  EXPECT_EQ(error_of(wrong), path("vol") + ": directory is not empty");
  EXPECT_EQ(read(path("vol/file")), "mine");
}

TEST_F(VolumeTest, RefusesARootInsideOrOnAVolume) {
  create_volume();
  VolumeOptions wrong = options();
  EXPECT_EQ(error_of(wrong), path("vol") + ": is a Graphlane volume already");
  wrong.root = path("vol/inner");
  EXPECT_EQ(error_of(wrong), path("vol/inner") + ": lies inside the volume " + path("vol"));
}

TEST_F(VolumeTest, RemovesTheDevicesWhenTheRootFails) {
  VolumeOptions wrong = options();
  wrong.root = path(std::string(300, 'v'));  // ENAMETOOLONG, found only when it is made
  EXPECT_NE(error_of(wrong).find("File name too long"), std::string::npos);
}

TEST_F(VolumeTest, RefusesNamesThatJsonCannotHold) {
  VolumeOptions wrong = options();
  fs::create_directory(path("\xff"));
  wrong.devices.push_back(path("\xff"));
  EXPECT_NE(error_of(wrong).find("not UTF-8"), std::string::npos);
}

TEST_F(VolumeTest, DetectsAMissingDevice) {
  create_volume();
  fs::remove_all(path("d2"));
  EXPECT_NE(open_error().find(path("d2") + ": missing: device 2 of volume "), std::string::npos);
}

TEST_F(VolumeTest, DetectsAnUnmountedDevice) {
  create_volume();
  fs::remove_all(volume_->devices()[2].root);
  EXPECT_NE(open_error().find(path("d2") + ": holds no device"), std::string::npos);
}

TEST_F(VolumeTest, DetectsSwappedDevices) {
  create_volume();
  fs::rename(path("d1"), path("x"));
  fs::rename(path("d2"), path("d1"));
  fs::rename(path("x"), path("d2"));
  EXPECT_NE(open_error().find(path("d1") + ": holds device 2 of volume "), std::string::npos);
}

TEST_F(VolumeTest, DetectsAForeignDevice) {
  create_volume();
  fs::rename(volume_->devices()[1].root, path("d1/graphlane-") + UuidText(Uuid::random()).c_str());
  EXPECT_NE(open_error().find(path("d1") + ": foreign: holds graphlane-"), std::string::npos);
}

TEST_F(VolumeTest, DetectsADeviceOfAnotherVolumeUnderItsName) {
  create_volume();
  write(device_json(1),
        to_json(DeviceRecord{.volume = Uuid::random(), .ordinal = 1, .device_count = 3}));
  EXPECT_NE(open_error().find(path("d1") + ": foreign: holds a device of volume "),
            std::string::npos);
}

TEST_F(VolumeTest, ReportsDamagedJsonWithNameAndReason) {
  create_volume();
  const std::string json = in_volume(".graphlane/volume.json");
  const std::string whole = read(json);
  write(json, whole.substr(0, whole.size() / 2));
  EXPECT_EQ(open_error(), json + ": not valid JSON (cut short or damaged)");
  write(json, R"({"format":3})");
  EXPECT_EQ(open_error(), json + ": format 3, this Graphlane knows formats 1 and 2");
  write(json, R"({"format":1,"uuid":7})");
  EXPECT_EQ(open_error(), json + ": damaged: \"uuid\" is missing or wrong");
  write(json, R"({"stripe_depth_auto":1,)" + whole.substr(1));
  EXPECT_EQ(open_error(), json + ": damaged: \"stripe_depth_auto\" is missing or wrong");
  write(json, whole);
  write(device_json(1), "");
  EXPECT_EQ(open_error(), device_json(1) + ": not valid JSON (cut short or damaged)");
}

// After any flipped byte of volume.json, opening fails, or gives another valid volume.json with as
// many devices.
TEST_F(VolumeTest, SurvivesEveryFlippedByteOfVolumeJson) {
  create_volume();
  const std::string json = in_volume(".graphlane/volume.json");
  const std::string whole = read(json);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x11);
    write(json, damaged);
    const auto opened = Volume::open(path("vol"));
    if (opened) {
      EXPECT_EQ((*opened)->device_count(), 3u) << i;
    } else {
      EXPECT_FALSE(opened.error().text.empty());
    }
  }
}

TEST_F(VolumeTest, IsFoundFromPathsInItThatNeedNotExist) {
  create_volume();
  fs::create_directory_symlink(path("vol"), path("link"));
  for (const char* name : {"vol", "vol/", "vol/a", "vol/a/b/c", "link", "link/a"}) {
    const auto root = find_volume_root(path(name));
    ASSERT_TRUE(root) << name << ": " << root.error().text;
    EXPECT_EQ(*root, path("vol")) << name;
  }
}

TEST_F(VolumeTest, IsNotFoundFromPathsThatLeaveIt) {
  create_volume();
  fs::create_directory_symlink(path("d0"), in_volume("out"));
  for (const char* name : {"vol/../x", "vol/out/x", "d0", "nowhere/at/all"}) {
    const auto root = find_volume_root(path(name));
    ASSERT_FALSE(root) << name;
    EXPECT_EQ(root.error().code, ENOENT);
    EXPECT_NE(root.error().text.find(path(name)), std::string::npos) << root.error().text;
  }
}

TEST_F(VolumeTest, AcceptsOnlyItsOwnStubs) {
  create_volume(3);
  Layout layout{.volume = volume_->uuid(),
                .file_id = Uuid::random(),
                .geometry = {.stripe_depth_bytes = 4096, .device_count = 3}};
  EXPECT_TRUE(volume_->accept(layout, "a"));
  layout.geometry.device_count = 4;
  EXPECT_EQ(volume_->accept(layout, "a").error().text,
            "a: striped over 4 devices, but the volume has 3");
  layout.volume = Uuid::random();
  EXPECT_NE(volume_->accept(layout, "a").error().text.find("a: stub of another volume"),
            std::string::npos);
}

struct Escape {
  const char* description;
  const char* path;
};

class VolumePathTest : public VolumeFixture, public ::testing::WithParamInterface<Escape> {};

TEST_P(VolumePathTest, DoesNotLeaveTheVolume) {
  create_volume();
  fs::create_directory_symlink("..", in_volume("up"));
  fs::create_directory_symlink(path("d0"), in_volume("out"));
  const auto place = locate_in_volume(*volume_, GetParam().path);
  ASSERT_FALSE(place) << GetParam().path << " is " << place->path;
  EXPECT_NE(place.error().text.find(GetParam().path), std::string::npos) << place.error().text;
}

INSTANTIATE_TEST_SUITE_P(, VolumePathTest,
                         ::testing::Values(Escape{"dots", "../x"},
                                           Escape{"inner dots", "up/../../x"},
                                           Escape{"relative link", "up/x"},
                                           Escape{"absolute link", "out/x"},
                                           Escape{"dots at the end", "a/.."},
                                           Escape{"control directory", ".graphlane/x"}));

}  // namespace
}  // namespace graphlane
