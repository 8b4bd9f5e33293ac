#include "iomgr/volume/parts/part_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/iomgr/striped_fixture.h"

namespace graphlane {
namespace {

class PartFilesTest : public StripedFixture {
 protected:
  std::vector<int> root_fds() const {
    std::vector<int> fds;
    for (const Fd& root : roots_) fds.push_back(root.get());
    return fds;
  }
  std::string part(uint32_t device_index) const {
    return device(device_index) + "/" + PartName(layout_.file_id).c_str();
  }
  void SetUp() override {
    StripedFixture::SetUp();
    make_file({.stripe_depth_bytes = 4096, .device_count = 3, .first_device = 1}, 50000);
  }
};

TEST_F(PartFilesTest, NamesTheDeviceWhosePartIsMissing) {
  std::filesystem::remove(part(2));
  PartFiles parts;
  const auto opened = parts.open(root_fds(), layout_, O_RDONLY, nullptr);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ENOENT);
  EXPECT_EQ(opened.error().device_index, 2u);
}

TEST_F(PartFilesTest, NamesTheDeviceWhosePartIsShort) {
  const uint64_t size = std::filesystem::file_size(part(1));
  std::filesystem::resize_file(part(1), size - 1);
  PartFiles parts;
  const auto opened = parts.open(root_fds(), layout_, O_RDONLY, nullptr);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, EIO);
  EXPECT_EQ(opened.error().device_index, 1u);
  EXPECT_EQ(opened.error().size_expected, size);
  EXPECT_EQ(opened.error().size_found, size - 1);
}

TEST_F(PartFilesTest, AFileThatIsBeingWrittenMayHaveShortParts) {
  std::filesystem::resize_file(part(1), 0);
  layout_.state = FileState::kOpen;
  PartFiles parts;
  EXPECT_TRUE(parts.open(root_fds(), layout_, O_RDONLY, nullptr));
}

// The owner of the device's directories could otherwise lead root to another volume's parts.
TEST_F(PartFilesTest, NoLinkOnTheWayLeadsToAPart) {
  namespace fs = std::filesystem;
  const fs::path own = fs::path(part(1)).parent_path();
  const fs::path elsewhere = fs::path(device(1)) / "elsewhere";
  fs::rename(own, elsewhere);
  fs::create_directory_symlink(elsewhere, own);
  const int root = root_fds()[1];
  EXPECT_FALSE(find_part(root, layout_.file_id));
  EXPECT_EQ(sync_part(root, layout_.file_id), ELOOP);
  EXPECT_EQ(remove_part(root, layout_.file_id), ELOOP);
  EXPECT_TRUE(fs::exists(part(1)));
  fs::remove(own);
  fs::rename(elsewhere, own);
  EXPECT_TRUE(find_part(root, layout_.file_id));
  EXPECT_EQ(remove_part(root, layout_.file_id), 0);
  EXPECT_FALSE(fs::exists(part(1)));
}

TEST_F(PartFilesTest, LeaveLowDescriptorNumbersToTheProgram) {
  PartFiles parts(500);
  ASSERT_TRUE(parts.open(root_fds(), layout_, O_RDONLY, nullptr));
  for (uint32_t d = 0; d < parts.count(); ++d) {
    EXPECT_GE(parts.buffered(d), 500);
    EXPECT_GE(parts.direct(d), 500);
  }
}

int count_descriptors() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    (void)entry;
    ++count;
  }
  return count;
}

TEST_F(PartFilesTest, DirectOpensAreRetriedWithoutDescriptors) {
  PartFiles parts;
  ASSERT_TRUE(parts.open(root_fds(), layout_, O_RDONLY, nullptr));
  if (Fd(::open(part(0).c_str(), O_RDONLY | O_DIRECT)).get() < 0) {
    GTEST_SKIP() << "no O_DIRECT here";
  }
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(parts.direct(0), parts.buffered(0));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_NE(parts.direct(0), parts.buffered(0));
}

TEST_F(PartFilesTest, CloseWhatTheyOpenedAlsoAfterAFailure) {
  const int before = count_descriptors();
  {
    PartFiles parts;
    ASSERT_TRUE(parts.open(root_fds(), layout_, O_RDONLY, nullptr));
    parts.direct(0);
  }
  EXPECT_EQ(count_descriptors(), before);
  std::filesystem::remove(part(2));
  PartFiles parts;
  ASSERT_FALSE(parts.open(root_fds(), layout_, O_RDONLY, nullptr));
  EXPECT_EQ(count_descriptors(), before);
}

}  // namespace
}  // namespace graphlane
