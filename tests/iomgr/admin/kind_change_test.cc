#include "iomgr/admin/kind_change.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "iomgr/admin/check.h"
#include "iomgr/volume/kind.h"
#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

TEST(KindTest, TheFinalNameIsThatWithoutWhatCopyingToolsAdd) {
  for (const auto& [name, expected] : {std::pair{".column.Ab3dE9", "column"},
                                       {"column.part", "column"},
                                       {"column.tmp", "column"},
                                       {".hidden", ".hidden"},
                                       {".column.short", ".column.short"},
                                       {".column.Ab-dE9", ".column.Ab-dE9"},
                                       {"..Ab3dE9", "..Ab3dE9"},
                                       {".part", ".part"},
                                       {"column", "column"},
                                       {"", ""}}) {
    EXPECT_EQ(final_name(name), expected);
  }
}

TEST(KindTest, ARenameAsksOnlyForAKindThatTheNamesSay) {
  for (const bool said : {false, true}) {
    EXPECT_EQ(kind_by_rename(FileKind::kPlain, said, true), FileKind::kStriped);
    EXPECT_EQ(kind_by_rename(FileKind::kPlain, said, false), std::nullopt);
    EXPECT_EQ(kind_by_rename(FileKind::kStriped, said, true), std::nullopt);
  }
  EXPECT_EQ(kind_by_rename(FileKind::kStriped, true, false), FileKind::kPlain);
  // An import striped it although its name did not say so.
  EXPECT_EQ(kind_by_rename(FileKind::kStriped, false, false), std::nullopt);
}

class KindChangeTest : public VolumeFixture {
 protected:
  void SetUp() override {
    VolumeFixture::SetUp();
    create_volume(3, 4096, {.globs = {"column"}, .size_min_bytes = 1000});
  }

  TreePlace place(const std::string& name) const {
    return {.directory_fd = volume_->root_fd(), .path = name, .shown = in_volume(name)};
  }

  KindChange change(const std::string& name, FileKind to, KindChangeOptions options = {}) const {
    const Outcome<KindChange> changed = change_kind(*volume_, place(name), to, options);
    EXPECT_TRUE(changed) << changed.error().text;
    return changed ? *changed : KindChange::kRight;
  }

  std::string reason(const std::string& name, FileKind to) const {
    const Outcome<KindChange> changed = change_kind(*volume_, place(name), to);
    return changed ? "" : changed.error().text;
  }

  void expect_no_problems() const {
    const auto report = check_volume(*volume_, {});
    ASSERT_TRUE(report) << report.error().text;
    EXPECT_EQ(report->problems, std::vector<std::string>());
  }

  const std::string content_ = random_bytes(50'001);
};

TEST_F(KindChangeTest, ThereAndBackKeepsBytesAndAttributes) {
  write(in_volume("column"), content_);
  ASSERT_EQ(::chmod(in_volume("column").c_str(), 0641), 0);
  const timespec times[2] = {{.tv_sec = 1'000, .tv_nsec = 1}, {.tv_sec = 2'000, .tv_nsec = 2}};
  ASSERT_EQ(::utimensat(AT_FDCWD, in_volume("column").c_str(), times, 0), 0);
  EXPECT_EQ(change("column", FileKind::kStriped), KindChange::kDone);
  EXPECT_EQ(change("column", FileKind::kStriped), KindChange::kRight);
  EXPECT_EQ(content_of("column"), content_);
  EXPECT_EQ(stat_of(part_of("column", 0)).st_mode & 0777, 0641u);
  expect_no_problems();
  std::filesystem::rename(in_volume("column"), in_volume("other"));
  EXPECT_EQ(change("other", FileKind::kPlain), KindChange::kDone);
  EXPECT_EQ(read(in_volume("other")), content_);
  const struct stat after = stat_of(in_volume("other"));
  EXPECT_EQ(after.st_mode & 07777, 0641u);
  EXPECT_EQ(after.st_mtim.tv_sec, 2'000);
  EXPECT_EQ(after.st_mtim.tv_nsec, 2);
  expect_no_problems();
}

TEST_F(KindChangeTest, TheNameDecidesOnceMore) {
  write(in_volume("other"), content_);
  EXPECT_EQ(change("other", FileKind::kStriped), KindChange::kRight);
  write(in_volume("column"), content_.substr(0, 999));
  EXPECT_EQ(change("column", FileKind::kStriped), KindChange::kRight);
  EXPECT_EQ(read(in_volume("column")), content_.substr(0, 999));
}

TEST_F(KindChangeTest, WhatWouldLoseSomethingKeepsItsKind) {
  write(in_volume("column"), content_);
  std::filesystem::create_hard_link(in_volume("column"), in_volume("again"));
  EXPECT_NE(reason("column", FileKind::kStriped).find("it has several names"), std::string::npos);
}

// The open for writing waits for the end of the lease, not of the copy.
TEST_F(KindChangeTest, AWriterEndsTheCopyAndItsBytesStay) {
  write(in_volume("column"), content_);
  bool wrote = false;
  EXPECT_EQ(change("column", FileKind::kStriped, {.go_on = [&]() -> Outcome<void> {
                     if (std::exchange(wrote, true)) return {};
                     const Fd file(::open(in_volume("column").c_str(), O_WRONLY | O_CLOEXEC));
                     EXPECT_EQ(::pwrite(file.get(), "new", 3, 0), 3);
                     return {};
                   }}),
            KindChange::kBusy);
  EXPECT_TRUE(wrote);
  EXPECT_EQ(read(in_volume("column")), "new" + content_.substr(3));
  EXPECT_EQ(change("column", FileKind::kStriped), KindChange::kDone);
  EXPECT_EQ(content_of("column"), "new" + content_.substr(3));
  expect_no_problems();
}

TEST_F(KindChangeTest, AReaderThatStaysKeepsTheInode) {
  write(in_volume("column"), content_);
  Fd reader;
  EXPECT_EQ(change("column", FileKind::kStriped, {.go_on = [&]() -> Outcome<void> {
                     reader.reset(::open(in_volume("column").c_str(), O_RDONLY | O_CLOEXEC));
                     return {};
                   }}),
            KindChange::kBusy);
  EXPECT_EQ(stat_of(in_volume("column")).st_size, static_cast<off_t>(content_.size()));
  reader.reset();
  EXPECT_EQ(change("column", FileKind::kStriped), KindChange::kDone);
}

// An open that comes just before the exchange gets the file, not an inode without a name.
TEST_F(KindChangeTest, AnOpenAtTheExchangeIsNotLost) {
  for (int round = 0; round < 30; ++round) {
    write(in_volume("column"), content_);
    std::atomic<bool> is_over{false};
    std::string expected = content_;
    std::thread writer([&] {
      while (!is_over) {
        const Fd file(::open(in_volume("column").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
        struct stat st;
        // A stub is not written to: the exchange has been.
        if (::fstat(file.get(), &st) != 0 || st.st_size == 4096) continue;
        EXPECT_EQ(::write(file.get(), "+", 1), 1);
        expected += "+";
      }
    });
    for (int tries = 0; tries < 20; ++tries) {
      if (change("column", FileKind::kStriped) == KindChange::kDone) break;
    }
    is_over = true;
    writer.join();
    const bool is_striped = stat_of(in_volume("column")).st_size == 4096;
    EXPECT_EQ(is_striped ? content_of("column") : read(in_volume("column")), expected);
    std::filesystem::remove(in_volume("column"));
  }
}

TEST_F(KindChangeTest, AnotherFileOfTheNameIsNotTouched) {
  write(in_volume("column"), content_);
  EXPECT_EQ(change("column", FileKind::kStriped, {.go_on = [&]() -> Outcome<void> {
                     std::filesystem::rename(in_volume("column"), in_volume("mine"));
                     std::filesystem::create_directory(in_volume("column"));
                     return {};
                   }}),
            KindChange::kBusy);
  EXPECT_TRUE(std::filesystem::is_directory(in_volume("column")));
  EXPECT_EQ(read(in_volume("mine")), content_);
  EXPECT_TRUE(std::filesystem::is_empty(in_volume(".graphlane/tmp")));
  expect_no_problems();
}

TEST_F(KindChangeTest, ARepairGivesMarkedFilesTheirKind) {
  write(in_volume("column"), content_);
  const Fd file(::open(in_volume("column").c_str(), O_PATH | O_CLOEXEC));
  const int error = wish_kind(file.get(), FileKind::kStriped);
  if (error == EOPNOTSUPP) GTEST_SKIP() << "not applicable: no attributes here";
  ASSERT_EQ(error, 0);
  EXPECT_EQ(wished_kind(file.get()), FileKind::kStriped);
  const auto looked = check_volume(*volume_, {});
  ASSERT_TRUE(looked) << looked.error().text;
  EXPECT_EQ(looked->problems.size(), 0u);
  EXPECT_EQ(looked->waiting.size(), 1u);
  const auto repaired = check_volume(*volume_, {.repair = true});
  ASSERT_TRUE(repaired) << repaired.error().text;
  EXPECT_EQ(repaired->waiting.size(), 0u);
  EXPECT_EQ(content_of("column"), content_);
}

}  // namespace
}  // namespace graphlane
