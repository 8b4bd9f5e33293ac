// Whether block devices are striped, by directories that look as in /sys.
#include "iomgr/volume/striped_volume.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace graphlane {
namespace fs = std::filesystem;
namespace {

class StripedVolumeTest : public testing::Test {
 protected:
  StripedVolumeTest() : root_(::mkdtemp(name_)) {}
  ~StripedVolumeTest() override { fs::remove_all(root_); }

  fs::path add(const std::string& name, int minor_number) {
    const fs::path device = root_ / "devices" / name;
    fs::create_directories(device);
    fs::create_directories(root_ / "block");
    fs::create_directory_symlink(device, root_ / "block" / ("8:" + std::to_string(minor_number)));
    return device;
  }
  void write(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  void put_on(const fs::path& device, const fs::path& below) {
    fs::create_directories(device / "slaves");
    fs::create_directory_symlink(below, device / "slaves" / below.filename());
  }
  std::string striped(int minor_number) {
    return striped_block_device(makedev(8, minor_number), root_ / "block");
  }

  char name_[32] = "/tmp/striped-volume-XXXXXX";
  const fs::path root_;
};

TEST_F(StripedVolumeTest, NamesMdAndLvm) {
  const fs::path md = add("md0", 1), mirror = add("md1", 2), lvm = add("dm-0", 3),
                 over_md = add("dm-1", 4);
  write(md / "md/level", "raid0");
  write(md / "md/raid_disks", "4");
  write(mirror / "md/level", "raid1");
  write(mirror / "md/raid_disks", "2");
  write(lvm / "dm/uuid", "LVM-abc");
  put_on(lvm, add("sda", 5));
  EXPECT_EQ(striped(3), "") << "over one disk";
  put_on(lvm, add("sdb", 6));
  put_on(over_md, md);
  EXPECT_EQ(striped(1), "md raid0 over 4 devices");
  EXPECT_EQ(striped(2), "");
  EXPECT_EQ(striped(3), "LVM over 2 devices");
  EXPECT_EQ(striped(4), "md raid0 over 4 devices") << "an encrypted volume over it, say";
  EXPECT_EQ(striped(5), "");
  EXPECT_EQ(striped(99), "") << "no block device";
}

TEST_F(StripedVolumeTest, APartitionIsOfItsDisk) {
  const fs::path md = add("md0", 1);
  write(md / "md/level", "raid10");
  write(md / "md/raid_disks", "4");
  write(add("md0/md0p1", 2) / "partition", "1");
  EXPECT_EQ(striped(2), "md raid10 over 4 devices");
}

TEST(OsStripedVolumeTest, IsNoneOnATemporaryFilesystem) {
  EXPECT_EQ(os_striped_volume("/dev/shm"), "");
}

}  // namespace
}  // namespace graphlane
