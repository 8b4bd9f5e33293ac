#include "iomgr/check.h"

#include <atomic>
#include <thread>

#include "iomgr/stub_copies.h"
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

  // The one problem there is.
  std::string problem() {
    const CheckReport report = check();
    EXPECT_EQ(report.problems.size(), 1u) << ::testing::PrintToString(report.problems);
    return report.problems.empty() ? "" : report.problems.front();
  }

  void write_stub(const Layout& layout, const std::string& name = "file") {
    const StubBytes bytes = encode_stub(layout);
    write(in_volume(name), std::string(bytes.begin(), bytes.end()));
  }

  std::string content_;
};

TEST_F(CheckTest, FindsNothingWrongWithAGoodVolume) {
  write(in_volume("plain"), "x");
  const CheckReport report = check(false, true);
  EXPECT_TRUE(report.problems.empty()) << report.problems.front();
  EXPECT_EQ(report.striped_count, 1u);
  EXPECT_EQ(report.plain_count, 1u);
  EXPECT_EQ(report.bytes, 50000u);
}

TEST_F(CheckTest, TellsMissingShortAndLongParts) {
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

TEST_F(CheckTest, MendsAStubThatAFailingMachineWroteHalf) {
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

TEST_F(CheckTest, TellsDamagedStubsAndKeepsTheirParts) {
  const std::string part = part_of("file", 0);
  const std::string stub = read(in_volume("file"));
  for (const auto& [damaged, reason] : std::vector<std::pair<std::string, std::string>>{
           {stub.substr(0, 4000), "stub is not 4096 bytes long"},
           {stub + "grown", "stub is not 4096 bytes long"},
           {stub.substr(0, 60) + "x" + stub.substr(61), "stub checksum mismatch"}}) {
    write(in_volume("file"), damaged);
    const CheckReport report = check(true);
    ASSERT_EQ(report.problems.size(), 4u);  // the stub, and three parts nobody names
    EXPECT_EQ(report.problems[0], in_volume("file") + ": " + reason);
    EXPECT_NE(report.problems[1].find("kept"), std::string::npos);
    EXPECT_TRUE(fs::exists(part));
  }
  write(in_volume("file"), stub);
  EXPECT_TRUE(check().problems.empty());
  EXPECT_EQ(content_of("file"), content_);
}

TEST_F(CheckTest, TellsAStubOfAnotherVolume) {
  Layout layout = layout_of("file");
  layout.volume = Uuid::random();
  write_stub(layout);
  EXPECT_NE(check().problems[0].find("stub of another volume"), std::string::npos);
}

TEST_F(CheckTest, TellsACopyOfAStub) {
  fs::create_hard_link(in_volume("file"), in_volume("hard"));
  EXPECT_TRUE(check().problems.empty());
  fs::copy_file(in_volume("file"), in_volume("zcopy"));
  EXPECT_EQ(problem(), in_volume("zcopy") + ": copy of the stub " + in_volume("file") +
                           ": both name the same parts; `graphlane rm` removes either alone, rm in a "
                           "mount does not");
}

// It says what the file was when it was copied.
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

TEST_F(CheckTest, RemovesOrphansAndNothingElse) {
  const std::string part = part_of("file", 0);
  fs::remove(in_volume("file"));
  write(volume_->devices()[0].root + "/parts/note.txt", "mine");
  write(volume_->devices()[0].root + "/parts/ab/0123", "mine");
  write(path("d0/mine"), "mine");
  EXPECT_EQ(check().problems.size(), 5u);
  EXPECT_TRUE(fs::exists(part)) << "a check changes nothing";
  const CheckReport report = check(true);
  EXPECT_EQ(report.repaired.size(), 3u);
  EXPECT_EQ(report.problems.size(), 2u);
  EXPECT_FALSE(fs::exists(part));
  EXPECT_EQ(read(volume_->devices()[0].root + "/parts/note.txt"), "mine");
  EXPECT_EQ(read(volume_->devices()[0].root + "/parts/ab/0123"), "mine");
  EXPECT_EQ(read(path("d0/mine")), "mine");
}

// A writer appended to the parts and died before it closed the stub.
TEST_F(CheckTest, ClosesAnOpenFileWithTheSizeOfItsParts) {
  Layout layout = layout_of("file");
  layout.state = FileState::kOpen;
  layout.logical_size = kNoBound;
  write_stub(layout);
  EXPECT_EQ(problem(), in_volume("file") + ": was never closed; its parts make 50000 bytes");
  EXPECT_EQ(check(true).repaired.size(), 1u);
  EXPECT_TRUE(check().problems.empty());
  EXPECT_EQ(content_of("file"), content_);
}

TEST_F(CheckTest, ClosingFillsTheHolesOfAnOpenFile) {
  Layout layout = layout_of("file");
  layout.state = FileState::kOpen;
  write_stub(layout);
  const uint32_t second = (layout.geometry.first_device + 1) % 3;
  fs::resize_file(part_of("file", second), 0);
  EXPECT_TRUE(check(true).problems.empty());
  const std::string now = content_of("file");
  EXPECT_EQ(now.size(), content_.size());
  EXPECT_EQ(now.substr(0, 4096), content_.substr(0, 4096));
  EXPECT_EQ(now.substr(4096, 4096), std::string(4096, '\0'));
}

TEST_F(CheckTest, RemovesWhatADeadImportLeft) {
  const std::string left = in_volume(".graphlane/tmp/dead");
  fs::create_directories(left);
  const std::string part = part_of("file", 0);
  fs::rename(in_volume("file"), left + "/top");  // killed just before the rename
  EXPECT_EQ(check().problems.size(), 4u);
  EXPECT_TRUE(check(true).problems.empty());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(part));
}

TEST_F(CheckTest, WaitsForNobodyAndTakesNoLiveImportForADeadOne) {
  const auto lock = VolumeLock::take(*volume_, VolumeLock::kShared);
  ASSERT_TRUE(lock);
  const auto report = check_volume(*volume_, {.repair = true});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, EBUSY);
}

}  // namespace
}  // namespace graphlane
