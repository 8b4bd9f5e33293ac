// Warm-up: what an open needs is in memory afterwards.
#include "iomgr/base/files/warm_up.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "iomgr/base/fd.h"
#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

class WarmUpTest : public VolumeFixture {
 protected:
  void SetUp() override {
    VolumeFixture::SetUp();
    write(path("a/deep/file"), "x");
    write(path("b/deep/file"), "x");
  }
  Fd open(const char* name) const {
    return Fd(::open(path(name).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
};

constexpr const char* kNames[] = {"deep/file", "deep/missing", "missing/file"};

TEST_F(WarmUpTest, WhatWasJustMadeIsNotCold) {
  EXPECT_FALSE(is_cold(open("a").get(), "deep/file"));
}

TEST_F(WarmUpTest, WhatIsNotThereIsLeftToTheOpen) {
  const Fd a = open("a"), b = open("b");
  const int roots[] = {a.get(), b.get(), -1};
  errno = 0;
  warm_up(roots, kNames, 0);
  warm_up({}, kNames, 0);
  EXPECT_EQ(errno, 0);
}

TEST_F(WarmUpTest, FilesOfAllDevicesAreInMemoryAfterwards) {
  const Fd a = open("a"), b = open("b");
  ::sync();
  std::ofstream("/proc/sys/vm/drop_caches") << "2";
  if (!is_cold(a.get(), "deep/file") || !is_cold(b.get(), "deep/file")) {
    GTEST_SKIP() << "not applicable: without root, or in memory whatever is dropped";
  }
  const int roots[] = {a.get(), b.get()};
  warm_up(roots, kNames, 0);
  EXPECT_FALSE(is_cold(a.get(), "deep/file"));
  EXPECT_FALSE(is_cold(b.get(), "deep/file"));
}

}  // namespace
}  // namespace graphlane
