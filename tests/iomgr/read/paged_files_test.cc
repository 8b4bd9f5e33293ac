// Files read by pages, whether plain or striped over a volume.
#include "iomgr/read/paged_files.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

struct ReadTask final : PageTask {
  void run(const PageBytes& bytes) noexcept override {
    got.resize(bytes.size_bytes());
    bytes.copy(0, std::as_writable_bytes(std::span(got)));
  }
  void failed(int errno_value) noexcept override { error = errno_value; }
  std::string got;
  int error = 0;
};

class PagedFilesTest : public VolumeFixture, public ::testing::WithParamInterface<bool> {
 protected:
  // A file of these bytes: striped, or plain.
  std::string make(const std::string& content) {
    write(path("source/file"), content);
    if (!GetParam()) return path("source/file");
    create_volume();
    EXPECT_TRUE(import(path("source/file")));
    return in_volume("file");
  }
  OpenPagedFile* open(const std::string& at) {
    const auto opened = files_.open(at);
    EXPECT_TRUE(opened) << opened.error().text;
    return opened ? *opened : nullptr;
  }
  PagedFiles files_;
};
INSTANTIATE_TEST_SUITE_P(Striped, PagedFilesTest, ::testing::Bool());

TEST_P(PagedFilesTest, ManyRangesHaveTheirBytes) {
  const std::string content = random_bytes(3'000'000 + 17);
  const OpenPagedFile* const file = open(make(content));
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->size_bytes(), content.size());
  const auto reader = PageReader::start({.budget_bytes = 4 << 20});
  ASSERT_TRUE(reader);
  PageQueue queue(**reader);
  std::vector<ReadTask> tasks(500);
  for (size_t i = 0; i < tasks.size(); ++i) {
    queue.submit(file->paged(), {i * 6000 + 3, 5000}, tasks[i]);
  }
  while (queue.wait()) {
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(tasks[i].error, 0);
    EXPECT_EQ(tasks[i].got, content.substr(i * 6000 + 3, 5000)) << i;
  }
  EXPECT_GT(files_.moved().io_count, 0u);
}

TEST_P(PagedFilesTest, ReadsWholeRangesAndTellsOfAnEarlyEnd) {
  const std::string content = random_bytes(100'000);
  const OpenPagedFile* const file = open(make(content));
  ASSERT_NE(file, nullptr);
  alignas(4096) static char buffer[104 << 10];
  ASSERT_TRUE(file->read({0, content.size()}, buffer));
  EXPECT_EQ(std::memcmp(buffer, content.data(), content.size()), 0);
  ASSERT_TRUE(file->read({5, 50'000}, buffer));
  EXPECT_EQ(std::memcmp(buffer, content.data() + 5, 50'000), 0);
  const Outcome<void> past = file->read({99'999, 2}, buffer);
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().code, EIO);
  EXPECT_EQ(past.error().text,
            file->path() + ": ends at byte 100000, and should have 100001 at least");
}

TEST_P(PagedFilesTest, APageThatFailsItsCheckIsAnError) {
  struct Refuses final : PageChecker {
    bool is_sound(uint64_t page_index, std::span<const std::byte> bytes) const override {
      EXPECT_EQ(bytes.size(), page_index == 24 ? 100'000u - 24 * 4096 : 4096u);
      return page_index != 7;
    }
  } checker;
  OpenPagedFile* const file = open(make(random_bytes(100'000)));
  ASSERT_NE(file, nullptr);
  file->check_pages_by(checker);
  const auto reader = PageReader::start({.budget_bytes = 4 << 20});
  PageQueue queue(**reader);
  ReadTask before, inside, over, last;
  queue.submit(file->paged(), {0, 7 * 4096}, before);
  queue.submit(file->paged(), {7 * 4096 + 5, 10}, inside);
  queue.submit(file->paged(), {6 * 4096, 3 * 4096}, over);
  queue.submit(file->paged(), {99'000, 1000}, last);
  while (queue.wait()) {
  }
  EXPECT_EQ(before.error, 0);
  EXPECT_EQ(inside.error, EBADMSG);
  EXPECT_EQ(over.error, EBADMSG);
  EXPECT_EQ(last.error, 0);
}

TEST_F(VolumeFixture, APagedFileMustBeAFile) {
  PagedFiles files;
  EXPECT_FALSE(files.open(directory_));
  const auto missing = files.open(path("none"));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text.find(path("none")), std::string::npos);
}

}  // namespace
}  // namespace graphlane
