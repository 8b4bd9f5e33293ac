#include "iomgr/admin/restripe.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "iomgr/admin/check.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/volume/parts/live_file.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

class RestripeTest : public VolumeFixture {
 protected:
  void make(const std::string& name, const std::string& content) {
    write(path(name), content);
    const auto imported = import(path(name));
    ASSERT_TRUE(imported) << imported.error().text;
  }

  RestripeReport restripe(uint64_t depth_bytes, const std::string& name = "") const {
    auto report = restripe_files(
        *volume_,
        {.path = name, .stripe_depth_bytes = depth_bytes, .patience = std::chrono::seconds(2)});
    EXPECT_TRUE(report) << report.error().text;
    return report ? std::move(*report) : RestripeReport{};
  }

  // The parts of all files. Files that come and go meanwhile do not matter.
  size_t part_count() const {
    size_t count = 0;
    for (const Device& device : volume_->devices()) {
      for (const auto& directory : std::filesystem::directory_iterator(device.root + "/parts")) {
        std::error_code gone;
        for ([[maybe_unused]] const auto& part :
             std::filesystem::directory_iterator(directory.path(), gone)) {
          ++count;
        }
      }
    }
    return count;
  }

  void expect_no_problems() const {
    const auto report = check_volume(*volume_, {});
    ASSERT_TRUE(report) << report.error().text;
    EXPECT_EQ(report->problems, std::vector<std::string>());
  }
};

TEST_F(RestripeTest, EveryDepthHoldsTheSameBytes) {
  for (const uint32_t device_count : {2, 3, 5}) {
    create_volume(device_count);
    for (const size_t size : {1, 4095, 4096, 4097, 50'000, 300'001}) {
      make("f" + std::to_string(size), random_bytes(size, size));
    }
    for (const uint64_t depth : {8192, 4096, 65536, 12288, 1 << 20}) {
      SCOPED_TRACE(testing::Message() << device_count << " devices, depth " << depth);
      const RestripeReport report = restripe(depth);
      EXPECT_EQ(report.changed.size(), 6u);
      EXPECT_TRUE(report.left.empty());
      for (const size_t size : {1, 4095, 4096, 4097, 50'000, 300'001}) {
        const std::string name = "f" + std::to_string(size);
        EXPECT_EQ(content_of(name), random_bytes(size, size));
        EXPECT_EQ(layout_of(name).geometry.stripe_depth_bytes, depth);
      }
      expect_no_problems();
    }
    TearDown();
    SetUp();
  }
}

TEST_F(RestripeTest, TheStubStaysTheInodeThatItWas) {
  create_volume();
  make("f", random_bytes(100'000));
  std::filesystem::create_hard_link(in_volume("f"), in_volume("again"));
  ASSERT_EQ(::chmod(in_volume("f").c_str(), 0640), 0);
  const timespec times[2] = {{.tv_sec = 1'000, .tv_nsec = 1}, {.tv_sec = 2'000, .tv_nsec = 2}};
  ASSERT_EQ(::utimensat(AT_FDCWD, in_volume("f").c_str(), times, 0), 0);
  const struct stat before = stat_of(in_volume("f"));
  const RestripeReport report = restripe(8192);
  EXPECT_EQ(report.changed.size(), 1u);  // once, not for each name
  const struct stat after = stat_of(in_volume("again"));
  EXPECT_EQ(after.st_ino, before.st_ino);
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_mtim.tv_sec, 2'000);
  EXPECT_EQ(after.st_mtim.tv_nsec, 2);
  EXPECT_EQ(stat_of(part_of("f", 0)).st_mode & 0777, 0640u);
  expect_no_problems();
}

// The copy is refused and left. The file keeps its parts.
TEST_F(RestripeTest, ACopyOfAStubIsLeft) {
  create_volume();
  make("f", random_bytes(100'000));
  make("g", random_bytes(100'000));
  std::filesystem::copy_file(in_volume("f"), in_volume("copy"));
  EXPECT_EQ(restripe(8192, "copy").left.size(), 1u);
  const RestripeReport report = restripe(8192);
  ASSERT_EQ(report.left.size(), 1u);
  EXPECT_NE(report.left[0].text.find("copy: a copy of a stub"), std::string::npos)
      << report.left[0].text;
  EXPECT_EQ(report.changed.size(), 2u);
  for (const std::string file : {"f", "g"}) {
    EXPECT_EQ(content_of(file), random_bytes(100'000)) << file;
  }
}

TEST_F(RestripeTest, HolesStayHoles) {
  create_volume();
  write(path("f"), "begin");
  ASSERT_EQ(::truncate(path("f").c_str(), 24 << 20), 0);
  ASSERT_TRUE(import(path("f")));
  EXPECT_EQ(restripe(1 << 20).changed.size(), 1u);
  int64_t blocks = 0;
  for (uint32_t d = 0; d < 3; ++d) blocks += stat_of(part_of("f", d)).st_blocks;
  EXPECT_LT(blocks * 512, 8 << 20);
  EXPECT_TRUE(content_of("f") == read(path("f")));
}

TEST_F(RestripeTest, AFileLeftOpenIsClosedFirst) {
  create_volume();
  make("f", random_bytes(100'000));
  Layout layout = layout_of("f");
  layout.state = FileState::kOpen;
  layout.logical_size = kNoBound;
  const StubBytes bytes = encode_stub(layout);
  write(in_volume("f"), std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  EXPECT_EQ(restripe(8192).changed.size(), 1u);
  EXPECT_EQ(layout_of("f").state, FileState::kClosed);
  EXPECT_EQ(content_of("f"), random_bytes(100'000));
}

TEST_F(RestripeTest, TheDepthOfAWholeVolumeIsThatOfNewFiles) {
  create_volume();
  make("f", random_bytes(100'000));
  restripe(8192, "f");
  EXPECT_EQ((*Volume::open(path("vol")))->stripe_depth_bytes(), 4096u);
  restripe(16384);
  EXPECT_EQ((*Volume::open(path("vol")))->stripe_depth_bytes(), 16384u);
  volume_ = *Volume::open(path("vol"));
  EXPECT_EQ(restripe(0).kept_count, 1u);
}

TEST_F(RestripeTest, AFileThatIsOpenKeepsItsParts) {
  create_volume();
  make("f", random_bytes(100'000));
  make("g", random_bytes(100'000, 2));
  const Layout before = layout_of("f");
  const Fd reader(::open(in_volume("f").c_str(), O_RDONLY | O_CLOEXEC));
  hold_parts(reader.get());
  const RestripeReport report = restripe(8192);
  EXPECT_EQ(report.changed.size(), 1u);
  ASSERT_EQ(report.left.size(), 1u);
  EXPECT_EQ(report.left[0].text, in_volume("f") + ": is in use");
  EXPECT_EQ(layout_of("f"), before);
  expect_no_problems();
}

TEST_F(RestripeTest, WaitsForAWriterToGo) {
  create_volume();
  make("f", random_bytes(100'000));
  auto live = LiveFile::open(*volume_, layout_of("f"),
                             Fd(::open(in_volume("f").c_str(), O_RDWR | O_CLOEXEC)), "f");
  ASSERT_TRUE(live);
  std::thread gone([&] {
    ::usleep(300'000);
    live->reset();
  });
  EXPECT_EQ(restripe(8192).changed.size(), 1u);
  gone.join();
}

TEST_F(RestripeTest, AnInterruptLeavesNothingBehind) {
  create_volume();
  make("f", random_bytes(100'000));
  const std::vector<std::string> before = all_paths();
  interrupt_requested = true;
  const auto report = restripe_files(*volume_, {.stripe_depth_bytes = 8192});
  interrupt_requested = false;
  ASSERT_TRUE(report);
  ASSERT_TRUE(report->stopped);
  EXPECT_EQ(report->stopped->code, EINTR);
  EXPECT_TRUE(report->changed.empty() && report->left.empty());
  EXPECT_EQ(all_paths(), before);
}

TEST_F(RestripeTest, DamagedAndForeignStubsAreNamedAndLeft) {
  create_volume();
  make("f", random_bytes(100'000));
  std::string damaged = read(in_volume("f"));
  damaged[100] = 'x';
  write(in_volume("damaged"), damaged);
  Layout foreign = layout_of("f");
  foreign.volume = Uuid::random();
  const StubBytes bytes = encode_stub(foreign);
  write(in_volume("foreign"),
        std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  const RestripeReport report = restripe(8192);
  EXPECT_EQ(report.changed.size(), 1u);
  ASSERT_EQ(report.left.size(), 2u);
  EXPECT_NE(report.left[0].text.find("damaged: stub checksum"), std::string::npos);
  EXPECT_NE(report.left[1].text.find("foreign: stub of another"), std::string::npos);
}

// A user forged the stub, with the id of another user's file.
TEST_F(RestripeTest, NoUserGetsPartsOfAnother) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  create_volume();
  make("f", random_bytes(100'000));
  const std::string stub = read(in_volume("f"));
  write(in_volume("mine"), stub);
  ASSERT_EQ(::chown(in_volume("mine").c_str(), 1234, 1234), 0);
  const RestripeReport report = restripe(8192, "mine");
  ASSERT_EQ(report.left.size(), 1u);
  EXPECT_EQ(report.left[0].code, EIO);
  EXPECT_EQ(read(in_volume("mine")), stub);
  EXPECT_EQ(content_of("f"), random_bytes(100'000));
}

// rm(1) or a mount removes the file while it is copied.
TEST_F(RestripeTest, ARemovedFileLeavesNoParts) {
  create_volume();
  make("f", random_bytes(20'000'000));
  std::atomic<bool> has_ended = false;
  std::thread remover([&] {
    // its new parts exist
    while (part_count() < 2 * volume_->device_count() && !has_ended) ::usleep(100);
    std::filesystem::remove(in_volume("f"));
  });
  restripe(8192);
  has_ended = true;
  remover.join();
  EXPECT_EQ(part_count(), 0u);
}

}  // namespace
}  // namespace graphlane
