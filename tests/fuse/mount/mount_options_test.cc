#include <gtest/gtest.h>

#include "fuse/mount/mount.h"
#include "iomgr/server/stats.h"

namespace graphlane::fuse {
namespace {

TEST(MountOptionsTest, ParsesMountsOptionList) {
  MountOptions options;
  ASSERT_TRUE(
      options.parse("rw,ro,threads=8,io=direct,backend=libaio,depth=4,max_read=256K,,"
                    "attr_timeout=2.5,noatime,_netdev,x-systemd.requires=/mnt"));
  ASSERT_TRUE(options.parse("allow_other"));
  EXPECT_TRUE(options.read_only && options.allow_other);
  EXPECT_EQ(options.thread_count, 8u);
  EXPECT_EQ(options.io_mode, IoMode::kDirect);
  EXPECT_EQ(options.lanes.backend, IoBackend::kAio);
  EXPECT_EQ(options.lanes.depth, 4u);
  EXPECT_EQ(options.max_read_bytes, 256u << 10);
  EXPECT_EQ(options.attr_timeout_seconds, 2.5);
  EXPECT_EQ(options.kernel_flags, (std::vector<std::string>{"rw", "ro", "noatime"}));
}

TEST(MountOptionsTest, TheLastValueWins) {
  MountOptions options;
  ASSERT_TRUE(options.parse("ro,noatime,remount,relatime,rw"));
  EXPECT_FALSE(options.read_only || options.no_access_times);
  EXPECT_TRUE(options.remount);
}

TEST(MountOptionsTest, ParsesTheKernelsListOfAMount) {
  MountOptions options;
  EXPECT_TRUE(
      options.parse("rw,nosuid,nodev,relatime,user_id=0,group_id=0,default_permissions,"
                    "allow_other,max_read=131072"));
}

TEST(MountOptionsTest, NamesTheInvalidOption) {
  for (const char* wrong : {"bogus", "threads", "threads=", "threads=0", "threads=9999",
                            "threads=4x", "io=", "io=fast", "depth=65", "max_read=1", "max_read=-5",
                            "attr_timeout=nan", "attr_timeout=", "remount=ro"}) {
    MountOptions options;
    const Outcome<void> parsed = options.parse(std::string("ro,") + wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().code, EINVAL);
    EXPECT_NE(parsed.error().text.find(wrong), std::string::npos) << parsed.error().text;
  }
}

TEST(StatsTest, QuotesForJson) {
  EXPECT_EQ(json_quoted("/mnt/\"d\\0\n"), "\"/mnt/\\\"d\\\\0\\u000a\"");
}

}  // namespace
}  // namespace graphlane::fuse
