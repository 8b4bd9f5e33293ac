#include "graphfmt/staging.h"

#include "graphfmt/grid/grid.h"
#include "tests/graphfmt/fixture.h"
#include "tests/iomgr/refused_calls.h"

namespace graphlane::graphfmt {
namespace {

namespace fs = std::filesystem;

class StagingTest : public TempDirTest {
 protected:
  // A directory with one file, under its final name.
  Outcome<void> build(const std::string& content, bool overwrite) const {
    auto staging = Staging::create(path("grid"), Staging::Kind::kDirectory, overwrite);
    if (!staging) return staging.error();
    std::ofstream(staging->path() + "/column") << content;
    return staging->commit();
  }
  void takes_the_place_of_the_old() const {
    const Outcome<void> built = build("new", /*overwrite=*/true);
    EXPECT_TRUE(built) << built.error().text;
    EXPECT_EQ(read(path("grid/column")), "new");
    EXPECT_EQ(names_in_dir(), std::vector<std::string>{"grid"});
  }
  void leaves_what_came_meanwhile() const {
    {
      auto staging = Staging::create(path("grid"), Staging::Kind::kDirectory, false);
      ASSERT_TRUE(staging);
      ASSERT_TRUE(fs::create_directory(path("grid")));  // empty: rename(2) would replace it
      const Outcome<void> done = staging->commit();
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, EEXIST);
    }
    EXPECT_TRUE(fs::is_empty(path("grid")));
    EXPECT_EQ(names_in_dir(), std::vector<std::string>{"grid"});
  }
};

TEST_F(StagingTest, TakesThePlaceOfTheOld) {
  ASSERT_TRUE(build("old", false));
  takes_the_place_of_the_old();
}

TEST_F(StagingTest, TakesThePlaceOfTheOldWhereNamesAreNotExchanged) {
  ASSERT_TRUE(build("old", false));
  without_rename_flags([this] { takes_the_place_of_the_old(); });
}

// Without anything there, either.
TEST_F(StagingTest, NeedsNothingToReplace) {
  takes_the_place_of_the_old();
  fs::remove_all(path("grid"));
  without_rename_flags([this] { takes_the_place_of_the_old(); });
}

// It was removed before anything was known to be able to take its place.
TEST_F(StagingTest, WhatCannotBeReplacedStaysWhereNamesAreNotExchanged) {
  ASSERT_TRUE(build("old", false));
  without_rename_flags([this] {
    auto staging = Staging::create(path("grid"), Staging::Kind::kDirectory, true);
    ASSERT_TRUE(staging);
    fs::remove_all(staging->path());
    EXPECT_FALSE(staging->commit());
  });
  EXPECT_EQ(read(path("grid/column")), "old");
}

TEST_F(StagingTest, AFileThatCannotBeClosedIsNone) {
  where_close_fails([this] {
    auto staging = Staging::create(path("list"), Staging::Kind::kFile, false);
    ASSERT_TRUE(staging);
    const Outcome<void> done = staging->commit();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().text, path("list") + ": cannot write: No space left on device");
  });
  EXPECT_EQ(names_in_dir(), std::vector<std::string>());
}

TEST_F(StagingTest, AGridWhoseFilesCannotBeClosedIsNone) {
  const std::string list = write("list", bytes_of<uint32_t>({0, 1, 1, 2}));
  where_close_fails([&] {
    const auto built = build_grid(
        {.input = list, .format = EdgeFormat::kBin, .output = path("grid"), .partitions = 2});
    ASSERT_FALSE(built);
    EXPECT_NE(built.error().text.find("cannot write: No space left on device"), std::string::npos)
        << built.error().text;
  });
  EXPECT_EQ(names_in_dir(), std::vector<std::string>{"list"});
}

TEST_F(StagingTest, LeavesWhatCameMeanwhile) { leaves_what_came_meanwhile(); }

// It was removed with all in it, as what was there at the begin was a list.
TEST_F(StagingTest, AListDoesNotReplaceADirectoryThatCameMeanwhile) {
  {
    auto staging = Staging::create(path("list"), Staging::Kind::kFile, /*overwrite=*/true);
    ASSERT_TRUE(staging);
    fs::create_directory(path("list"));
    std::ofstream(path("list/letter")) << "dear all";
    const Outcome<void> done = staging->commit();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().text, path("list") + ": exists and is not a regular file");
  }
  EXPECT_EQ(read(path("list/letter")), "dear all");
  EXPECT_EQ(names_in_dir(), std::vector<std::string>{"list"});
}

TEST_F(StagingTest, AListThatIsReplacedStaysAsClosedAsItWas) {
  write("list", {});
  fs::permissions(path("list"), fs::perms::owner_read | fs::perms::owner_write);
  auto staging = Staging::create(path("list"), Staging::Kind::kFile, /*overwrite=*/true);
  ASSERT_TRUE(staging);
  ASSERT_TRUE(staging->commit());
  EXPECT_EQ(fs::status(path("list")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(StagingTest, LeavesWhatCameMeanwhileWhereRenameDoesNotLook) {
  without_rename_flags([this] { leaves_what_came_meanwhile(); });
}

}  // namespace
}  // namespace graphlane::graphfmt
