// FileSweeps: which ranges a sweep over files prefetches, and in how much of the page cache.
#include "iomgr/read/file_sweeps.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/sizes.h"

namespace graphlane {
namespace {

class FileSweepsTest : public ::testing::Test {
 protected:
  // Reads 4 MiB of each file. Returns the files that the last of these reads prefetches.
  std::string read(const std::string& names) {
    std::string next;
    for (const char name : names) {
      (void)sweeps_->arrive(id(name), kStep);
      next.clear();
      for (const auto& range : sweeps_->passed(id(name), kStep, /*size_bytes=*/0)) {
        next += static_cast<char>(range.file_id.bytes[0]);
      }
    }
    return next;
  }
  static Uuid id(char name) {
    Uuid uuid;
    uuid.bytes[0] = static_cast<uint8_t>(name);
    return uuid;
  }

  static constexpr ByteRange kStep{.offset = 0, .length_bytes = 4 * kMiB};
  const std::unique_ptr<FileSweeps> sweeps_ = std::make_unique<FileSweeps>();
};

TEST_F(FileSweepsTest, PrefetchesWhatTheLastSweepReadNext) {
  sweeps_->set_available(1024 * kMiB);
  EXPECT_EQ(read("abc"), "");
  EXPECT_EQ(read("a"), "bca");
  EXPECT_EQ(read("b"), "b") << "c and a are under way";
}

TEST_F(FileSweepsTest, PrefetchesNothingBeforeTheMemoryIsKnown) { EXPECT_EQ(read("abcabc"), ""); }

TEST_F(FileSweepsTest, PrefetchesAQuarterOfTheFreeMemoryAtMost) {
  sweeps_->set_available(4 * 4 * kMiB);
  EXPECT_EQ(read("abca"), "b");
}

TEST_F(FileSweepsTest, LooksAtTheMemoryFirstAndEvery32Mib) {
  EXPECT_TRUE(sweeps_->is_look_due(1));
  EXPECT_FALSE(sweeps_->is_look_due(32 * kMiB - 1));
  EXPECT_TRUE(sweeps_->is_look_due(1));
  EXPECT_FALSE(sweeps_->is_look_due(1));
  sweeps_->look_soon();
  EXPECT_TRUE(sweeps_->is_look_due(1));
}

}  // namespace
}  // namespace graphlane
