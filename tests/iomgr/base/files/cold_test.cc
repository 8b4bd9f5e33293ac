// is_cold(): whether an open would wait for its device.
#include "iomgr/base/files/cold.h"

#include <gtest/gtest.h>

#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

using ColdTest = VolumeFixture;

TEST_F(ColdTest, WhatWasJustMadeIsNot) {
  write(path("deep/file"), "x");
  errno = 0;
  EXPECT_FALSE(is_cold(AT_FDCWD, path("deep/file").c_str()));
  EXPECT_EQ(errno, 0);
}

TEST_F(ColdTest, WhatIsMissingIsUntilOneHasLookedForIt) {
  const std::string missing = path("missing");
  errno = 0;
  if (!is_cold(AT_FDCWD, missing.c_str())) GTEST_SKIP() << "not applicable: Linux 5.12 tells";
  EXPECT_EQ(errno, 0);
  EXPECT_NE(::access(missing.c_str(), F_OK), 0);
  EXPECT_FALSE(is_cold(AT_FDCWD, missing.c_str()));
}

}  // namespace
}  // namespace graphlane
