// ReadSizes: how the sizes of one handle's reads predict those of the next.
#include "fuse/inode/read_sizes.h"

#include <gtest/gtest.h>

namespace graphlane::fuse {
namespace {

TEST(ReadSizesTest, TheFirstRequestsDecideForThePageCache) {
  ReadSizes large, small;
  EXPECT_FALSE(large.shows_large(1000, 4096)) << "the end of a window may come first";
  EXPECT_TRUE(large.shows_large(4096, 4096));
  EXPECT_FALSE(small.shows_large(1024, 4096));
  EXPECT_FALSE(small.shows_large(2048, 4096));
  EXPECT_FALSE(small.shows_large(4096, 4096)) << "the window has grown";
}

TEST(ReadSizesTest, PredictsFromTheFilesLastReadsElseFromOtherFiles) {
  LastReadSizes all, file;
  EXPECT_TRUE(file.large(all));
  all.set(/*large=*/false);
  EXPECT_FALSE(file.large(all));
  file.set(/*large=*/true);
  EXPECT_TRUE(file.large(all));
}

}  // namespace
}  // namespace graphlane::fuse
