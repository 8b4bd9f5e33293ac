#include "fuse/coherence/live_files.h"

#include "iomgr/base/files/reopen.h"
#include "tests/fuse/temporary_volume.h"

namespace graphlane::fuse {
namespace {

class LiveFilesTest : public ::testing::Test {
 protected:
  Fd open_stub(int flags) const { return Fd(::open(volume_.path("f").c_str(), flags | O_CLOEXEC)); }

  std::shared_ptr<StripedFile> open_to_read() const {
    auto file = StripedFile::open(*volume_, open_stub(O_RDONLY).get(), layout_, "f", O_RDWR);
    EXPECT_TRUE(file) << file.error().text;
    (*file)->hold(open_stub(O_RDONLY));
    return *file;
  }

  const TemporaryVolume volume_;
  const Layout layout_ = volume_.add_striped("f", 50'000);
  LiveFiles live_{*volume_};
};

TEST_F(LiveFilesTest, ReadersSeeChangesByOtherProcesses) {
  const auto reading = open_to_read();
  Layout shorter = layout_;
  shorter.logical_size = 40'000;
  ASSERT_TRUE(write_stub(open_stub(O_RDWR).get(), shorter));
  live_.follow_stub(*reading);
  EXPECT_EQ(reading->size(), 40'000u);
}

// A reader that opened before the writer may set its size late. The writer's size stands.
TEST_F(LiveFilesTest, ReadersDoNotSetTheSizeOfAFileWrittenHere) {
  const auto reading = open_to_read();
  auto writer = live_.acquire(layout_, open_stub(O_RDWR), "f", reading);
  ASSERT_TRUE(writer) << writer.error().text;
  const ByteRange range{.offset = 60'000, .length_bytes = 10'000};
  LiveFile::Write write(**writer, range);
  ASSERT_TRUE(write.begin());  // the parts are longer from here on
  live_.follow_stub(*reading);
  EXPECT_EQ(reading->size(), 50'000u);
  write.end(range.end());
  EXPECT_EQ(reading->size(), 70'000u);
}

class WithoutANameTest : public LiveFilesTest, public ::testing::WithParamInterface<bool> {};

// Reopens the file by /proc when its parts can no longer be looked up by name.
TEST_P(WithoutANameTest, AnOpenFileCanBeReopened) {
  const auto reading = open_to_read();
  {
    auto writer = live_.acquire(layout_, open_stub(O_RDWR), "f", reading);
    ASSERT_TRUE(writer) << writer.error().text;
    ASSERT_TRUE((**writer).resize(70'000));
    const bool last_writer_goes_first = GetParam();
    if (last_writer_goes_first) *writer = {};
    std::filesystem::remove(volume_.path("f"));
    for (uint32_t d = 0; d < 3; ++d) {
      std::filesystem::remove((*volume_).part_path(d, layout_.file_id));
    }
    live_.drop(layout_.file_id);
  }
  Layout said;
  ASSERT_TRUE(read_stub(reading->held_stub(), kStubSize, &said));
  const auto again = live_.acquire(said, reopen(reading->held_stub(), O_RDWR), "f", reading);
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(reading->size(), 70'000u);
}

INSTANTIATE_TEST_SUITE_P(Either, WithoutANameTest, ::testing::Bool(), [](const auto& test) {
  return test.param ? "TheLastWriterGoesFirst" : "TheNameGoesFirst";
});

}  // namespace
}  // namespace graphlane::fuse
