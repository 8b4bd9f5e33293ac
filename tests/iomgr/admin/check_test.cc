#include "iomgr/admin/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "iomgr/admin/restripe.h"
#include "iomgr/admin/stub_copies.h"
#include "iomgr/volume/parts/striped_file.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

namespace fs = std::filesystem;

class CheckTest : public VolumeFixture {
 protected:
  void SetUp() override {
    VolumeFixture::SetUp();
    create_volume(3, 4096);
    content_ = random_bytes(50000);
    write(path("source"), content_);
    ASSERT_TRUE(import(path("source"), "file"));
  }

  CheckReport check(bool repair = false, bool scrub = false) {
    const auto report = check_volume(*volume_, {.repair = repair, .scrub = scrub});
    EXPECT_TRUE(report) << report.error().text;
    return report ? *report : CheckReport{};
  }

  // The only problem in the list.
  std::string problem() {
    const CheckReport report = check();
    EXPECT_EQ(report.problems.size(), 1u) << ::testing::PrintToString(report.problems);
    return report.problems.empty() ? "" : report.problems.front();
  }

  void write_stub(const Layout& layout, const std::string& name = "file") {
    const StubBytes bytes = encode_stub(layout);
    write(in_volume(name), std::string(bytes.begin(), bytes.end()));
  }

  // The parts are bound to the inode, and no byte of the file was ever synced.
  void promise_nothing(const Layout& layout) const {
    for (uint32_t d = 0; d < 3; ++d) {
      const PartRecord record{.ordinal = d,
                              .geometry = layout.geometry,
                              .generation = layout.generation,
                              .stub = layout.identity};
      const Fd part(::open(part_of("file", d).c_str(), O_RDWR | O_CLOEXEC));
      ASSERT_EQ(write_part_record(part.get(), {.volume = layout.volume, .file_id = layout.file_id},
                                  record),
                0);
    }
  }

  std::string content_;
};

TEST_F(CheckTest, AGoodVolumePassesTheCheck) {
  write(in_volume("plain"), "x");
  const CheckReport report = check(false, true);
  EXPECT_TRUE(report.problems.empty()) << report.problems.front();
  EXPECT_EQ(report.striped_count, 1u);
  EXPECT_EQ(report.plain_count, 1u);
  EXPECT_EQ(report.bytes, 50000u);
}

TEST_F(CheckTest, ReportsMissingShortAndLongParts) {
  const std::string part = part_of("file", 1);
  const uint64_t size = fs::file_size(part);
  fs::resize_file(part, size - 1);
  EXPECT_EQ(problem(), fmt::format("{}: part {} is short: {} bytes, expected {}", in_volume("file"),
                                   part, size - 1, size));
  fs::resize_file(part, size + 1);
  EXPECT_EQ(problem(), fmt::format("{}: part {} is long: {} bytes, expected {}", in_volume("file"),
                                   part, size + 1, size));
  EXPECT_EQ(check(true).repaired.size(), 1u);
  EXPECT_TRUE(check().problems.empty());
  fs::remove(part);
  EXPECT_EQ(problem(), in_volume("file") + ": part " + part + " is missing");
}

TEST_F(CheckTest, RepairsATornStub) {
  const std::string closed = read(in_volume("file"));
  Layout open_layout = layout_of("file");
  open_layout.state = FileState::kOpen;
  open_layout.logical_size = kNoBound;
  const StubBytes bytes = encode_stub(open_layout);
  const std::string open(bytes.begin(), bytes.end());
  const auto torn = [](const std::string& first, const std::string& rest) {
    return first.substr(0, 512) + rest.substr(512);
  };
  for (const std::string& stub : {torn(closed, open), torn(open, closed)}) {
    write(in_volume("file"), stub);
    EXPECT_EQ(check().problems.front(), in_volume("file") + ": stub checksum mismatch");
    const CheckReport report = check(true);
    EXPECT_TRUE(report.problems.empty()) << report.problems.front();
    EXPECT_EQ(report.repaired.front(), in_volume("file") + ": was written half, is whole now");
    EXPECT_TRUE(check().problems.empty());
    EXPECT_EQ(content_of("file"), content_);
  }
}

TEST_F(CheckTest, OthersMayMakeAndRemoveNamesMeanwhile) {
  std::atomic<bool> done = false;
  std::thread other([&] {
    const std::string place = in_volume("comes");
    while (!done) {
      fs::create_directories(place + "/and");
      write(place + "/and/goes", "x");
      std::error_code ignored;
      fs::remove_all(place, ignored);
    }
  });
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(StubCounts::take(*volume_));
    EXPECT_TRUE(check().problems.empty());
  }
  done = true;
  other.join();
}

TEST_F(CheckTest, ReportsDamagedStubsAndKeepsTheirParts) {
  const std::string part = part_of("file", 0);
  const std::string stub = read(in_volume("file"));
  for (const auto& [damaged, reason] : std::vector<std::pair<std::string, std::string>>{
           {stub.substr(0, 4000), "stub is not 4096 bytes long"},
           {stub + "grown", "stub is not 4096 bytes long"},
           {stub.substr(0, 60) + "x" + stub.substr(61), "stub checksum mismatch"}}) {
    write(in_volume("file"), damaged);
    const CheckReport report = check(true);
    ASSERT_EQ(report.problems.size(), 1u);
    EXPECT_EQ(report.problems[0], in_volume("file") + ": " + reason);
    EXPECT_EQ(report.orphans_kept, in_volume("file") + " may be the stub of one");
    EXPECT_TRUE(fs::exists(part));
  }
  write(in_volume("file"), stub);
  EXPECT_EQ(check(true).repaired.size(), 1u) << "it is no orphan any more";
  EXPECT_TRUE(check().problems.empty());
  EXPECT_EQ(content_of("file"), content_);
}

TEST_F(CheckTest, DetectsAStubOfAnotherVolume) {
  Layout layout = layout_of("file");
  layout.volume = Uuid::random();
  write_stub(layout);
  EXPECT_NE(check().problems[0].find("stub of another volume"), std::string::npos);
}

TEST_F(CheckTest, DetectsACopyOfAStub) {
  fs::create_hard_link(in_volume("file"), in_volume("hard"));
  EXPECT_TRUE(check().problems.empty());
  fs::copy_file(in_volume("file"), in_volume("zcopy"));
  EXPECT_EQ(problem().rfind(in_volume("zcopy") + ": a copy of a stub", 0), 0u);
  fs::copy_file(in_volume("file"), in_volume("acopy"));  // the walk finds this one first
  fs::remove(in_volume("zcopy"));
  EXPECT_EQ(problem().rfind(in_volume("acopy") + ": a copy of a stub", 0), 0u);
}

// The copy describes the file as it was then.
TEST_F(CheckTest, RepairsNothingByACopyOfAStub) {
  Layout layout = layout_of("file");
  layout.logical_size = 10000;
  for (const FileState state : {FileState::kClosed, FileState::kOpen}) {
    layout.state = state;
    write_stub(layout, "earlier");
    EXPECT_TRUE(check(true).repaired.empty());
    EXPECT_EQ(content_of("file"), content_);
  }
}

TEST_F(CheckTest, RepairsNothingByAStubWhoseOwnerDoesNotOwnTheParts) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  Layout layout = layout_of("file");
  layout.logical_size = 10000;
  write_stub(layout, "another's");
  ASSERT_EQ(::chown(in_volume("another's").c_str(), 1234, 1234), 0);
  EXPECT_TRUE(check(true).repaired.empty());
  EXPECT_EQ(content_of("file"), content_);
}

TEST_F(CheckTest, KeepsAndNotesOrphans) {
  const std::string id(UuidText(layout_of("file").file_id).view());
  const std::string part = part_of("file", 0);
  const std::string stub = path("stub");
  fs::rename(in_volume("file"), stub);
  write(volume_->devices()[0].root + "/parts/note.txt", "mine");
  write(volume_->devices()[0].root + "/parts/ab/0123", "mine");
  write(path("d0/mine"), "mine");
  EXPECT_EQ(check().problems.size(), 3u);
  EXPECT_FALSE(fs::exists(in_volume("lost+found"))) << "a check changes nothing";

  CheckReport report = check(true);
  EXPECT_EQ(report.repaired.size(), 1u);
  EXPECT_EQ(report.problems.size(), 2u);
  ASSERT_EQ(report.orphans.size(), 1u);
  EXPECT_EQ(report.orphans[0].bytes, 50000u);
  EXPECT_EQ(report.orphans[0].part_count, 3u);
  EXPECT_EQ(stat_of(in_volume("lost+found")).st_mode & 07777, 0700u);
  EXPECT_TRUE(fs::exists(in_volume("lost+found/" + id)));
  EXPECT_TRUE(fs::exists(part));
  EXPECT_EQ(check().problems.size(), 2u) << "what is noted is no problem";
  EXPECT_TRUE(check(true).repaired.empty()) << "once is enough";

  fs::rename(stub, in_volume("file"));
  EXPECT_EQ(content_of("file"), content_);
  EXPECT_EQ(check().orphans.size(), 0u);
  EXPECT_EQ(check(true).repaired.size(), 1u);
  EXPECT_FALSE(fs::exists(in_volume("lost+found/" + id)));
  EXPECT_EQ(read(volume_->devices()[0].root + "/parts/note.txt"), "mine");
  EXPECT_EQ(read(volume_->devices()[0].root + "/parts/ab/0123"), "mine");
  EXPECT_EQ(read(path("d0/mine")), "mine");
}

TEST_F(CheckTest, DeletesOrphansOnRequest) {
  const Uuid id = layout_of("file").file_id;
  const std::string part = part_of("file", 0), stub = read(in_volume("file"));
  ASSERT_TRUE(import(path("source"), "other"));
  const CheckOptions options{.delete_orphans = {id.bytes, layout_of("other").file_id.bytes}};
  const auto run = [&] {
    const auto report = check_volume(*volume_, options);
    EXPECT_TRUE(report) << report.error().text;
    return report ? *report : CheckReport{};
  };
  EXPECT_TRUE(run().repaired.empty()) << "none of them is an orphan";
  fs::remove(in_volume("file"));
  // A stub that may name the parts keeps them.
  write(in_volume("damaged"), stub.substr(0, 4000));
  EXPECT_TRUE(run().repaired.empty());
  EXPECT_TRUE(fs::exists(part));
  fs::remove(in_volume("damaged"));

  EXPECT_EQ(check(true).repaired.size(), 1u);
  EXPECT_EQ(run().repaired.size(), 1u);
  EXPECT_FALSE(fs::exists(part));
  EXPECT_TRUE(fs::is_empty(in_volume("lost+found")));
  EXPECT_TRUE(check().problems.empty());
  EXPECT_EQ(content_of("other"), content_);
}

TEST_F(CheckTest, GoesOnBesideAFolderThatItCannotRead) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "not applicable: root reads all (test_check.py has root's case)";
  }
  fs::create_directory(in_volume("closed"));
  fs::rename(in_volume("file"), in_volume("closed/file"));
  fs::permissions(in_volume("closed"), fs::perms::none);
  const CheckReport report = check();
  fs::permissions(in_volume("closed"), fs::perms::owner_all);
  EXPECT_EQ(report.problems.size(), 2u);
  EXPECT_NE(report.orphans_kept.find("closed"), std::string::npos);
}

// Any user with a writable folder can make such a tree.
TEST_F(CheckTest, WalksFoldersDeeperThanAPathMayBe) {
  constexpr int kDepth = 3000;
  const std::string name = "deep";
  Fd at(::open(in_volume("").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < kDepth; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0755), 0);
    at.reset(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  const Fd top(::open(in_volume("").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Layout layout = layout_of("file");
  layout.state = FileState::kOpen;
  layout.logical_size = kNoBound;
  write_stub(layout);
  ASSERT_EQ(::renameat(top.get(), "file", at.get(), "file"), 0);
  CheckReport report = check();
  EXPECT_TRUE(report.problems.empty()) << report.problems.front().substr(0, 100);
  EXPECT_EQ(report.striped_count, 1u);
  EXPECT_EQ(check(true).repaired.size(), 1u) << "it can be opened down there, and closed";
  const auto restriped = restripe_files(*volume_, {.stripe_depth_bytes = 8192});
  ASSERT_TRUE(restriped);
  EXPECT_EQ(restriped->changed.size(), 1u);
  EXPECT_TRUE(check(false, true).problems.empty());
  ASSERT_TRUE(remove_files(*volume_, "deep", true));
  EXPECT_TRUE(check().orphans.empty());
  EXPECT_FALSE(fs::exists(in_volume("deep")));
}

// A writer appended to the parts and died before it closed the stub.
TEST_F(CheckTest, ClosesAnOpenFileWithTheSizeOfItsParts) {
  Layout layout = layout_of("file");
  layout.state = FileState::kOpen;
  layout.logical_size = kNoBound;
  write_stub(layout);
  const CheckReport report = check();
  EXPECT_TRUE(report.problems.empty());
  ASSERT_EQ(report.open.size(), 1u);
  EXPECT_EQ(report.open[0], in_volume("file") + ": not closed; its parts make 48.8 KiB");
  EXPECT_EQ(check(true).repaired.size(), 1u);
  EXPECT_TRUE(check().open.empty());
  EXPECT_TRUE(check().problems.empty());
  EXPECT_EQ(content_of("file"), content_);
}

// An interrupted write leaves some parts longer than others. Bytes behind the gap were never part
// of the file.
TEST_F(CheckTest, AnOpenFileEndsWhereTheFirstPartEnds) {
  Layout layout = layout_of("file");
  layout.state = FileState::kOpen;
  write_stub(layout);
  promise_nothing(layout);
  const uint32_t second = (layout.geometry.first_device + 1) % 3;
  fs::resize_file(part_of("file", second), 100);
  const CheckReport report = check(true);
  ASSERT_TRUE(report.problems.empty()) << report.problems.front();
  EXPECT_EQ(content_of("file"), content_.substr(0, 4196));
}

// The records of the parts promise more than the parts hold: a device has lost data.
TEST_F(CheckTest, LeavesADamagedFileAlone) {
  Layout layout = layout_of("file");
  layout.state = FileState::kOpen;
  layout.logical_size = kNoBound;
  write_stub(layout);
  const PartRecord record{.ordinal = 0,
                          .geometry = layout.geometry,
                          .generation = layout.generation,
                          .stub = layout.identity,
                          .synced_bytes = 50000};
  const Fd part(::open(part_of("file", 0).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(
      write_part_record(part.get(), {.volume = layout.volume, .file_id = layout.file_id}, record),
      0);
  EXPECT_TRUE(check().problems.empty());
  const uint64_t size = fs::file_size(part_of("file", 1));
  fs::resize_file(part_of("file", 1), size - 1);
  for (const bool repair : {false, true}) {
    const CheckReport report = check(repair);
    ASSERT_EQ(report.problems.size(), 1u);
    EXPECT_TRUE(report.repaired.empty());
    EXPECT_NE(
        report.problems[0].find("damaged: it had 50000 bytes, but part " + part_of("file", 1)),
        std::string::npos);
  }
  EXPECT_FALSE(
      StripedFile::open(*volume_, stub_of("file").get(), current_layout(*volume_, layout), "file"));
  // A smaller bound lowers the promise.
  layout.logical_size = 4096;
  write_stub(layout);
  EXPECT_TRUE(check().problems.empty());
}

TEST_F(CheckTest, ShowsAnOrphanWithARecordedLayout) {
  const Layout layout = layout_of("file");
  promise_nothing(layout);
  const std::string name = fmt::format("lost+found/{}", UuidText(layout.file_id).view());
  fs::rename(in_volume("file"), path("away"));
  EXPECT_EQ(check(true).repaired.size(), 1u);
  EXPECT_EQ(stat_of(in_volume(name)).st_mode & 07777, 0400u);
  EXPECT_EQ(layout_of(name).geometry, layout.geometry);
  EXPECT_EQ(content_of(name), content_);
  EXPECT_TRUE(check().problems.empty());
  // The copy owns nothing.
  ASSERT_TRUE(remove_files(*volume_, name, false));
  fs::rename(path("away"), in_volume("file"));
  EXPECT_EQ(content_of("file"), content_);
}

TEST_F(CheckTest, RemovesLeftoversOfADeadImport) {
  const std::string left = in_volume(".graphlane/tmp/dead");
  fs::create_directories(left);
  const std::string part = part_of("file", 0);
  fs::rename(in_volume("file"), left + "/top");  // killed just before the rename
  EXPECT_EQ(check().problems.size(), 2u);
  EXPECT_TRUE(check(true).problems.empty());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(part));
}

TEST_F(CheckTest, DoesNotWaitAndKeepsLiveImports) {
  const auto lock = VolumeLock::take(*volume_, VolumeLock::kShared);
  ASSERT_TRUE(lock);
  const auto report = check_volume(*volume_, {.repair = true});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, EBUSY);
}

}  // namespace
}  // namespace graphlane
