#include "adapters/share/coordinator/graph_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "adapters/share/memory/sealed_memory.h"
#include "iomgr/base/files/file_io.h"

namespace graphlane::share {
namespace {

// A file of 40 MB, which is more than two pieces, and does not end with a block.
class GraphFilesTest : public testing::Test {
 protected:
  GraphFilesTest()
      : path_((std::filesystem::temp_directory_path() / "graph_files_XXXXXX").string()) {
    Fd file(::mkstemp(path_.data()));
    bytes_.resize(40'000'001);
    std::mt19937 random(1);
    for (char& byte : bytes_) byte = static_cast<char>(random());
    EXPECT_TRUE(pwrite_full(file.get(), bytes_.data(), bytes_.size(), 0));
    ::fsync(file.get());
    graph_.name = "graph";
    graph_.files.emplace_back(sys::openat(AT_FDCWD, path_.c_str(), O_RDONLY | O_CLOEXEC));
    graph_.direct.emplace_back(
        sys::openat(AT_FDCWD, path_.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
    graph_.identities.push_back(*identify(graph_.files[0].get()));
  }
  ~GraphFilesTest() override { std::filesystem::remove(path_); }

  void lay_out(std::vector<FileRange> ranges, uint64_t unit_bytes = kUncut) {
    graph_.layout.ranges = std::move(ranges);
    graph_.layout.partition_count = graph_.layout.ranges.back().partition + 1;
    graph_.units = Units(partition_sizes(graph_.layout), unit_bytes);
  }
  void forget_cached() { ::posix_fadvise(graph_.files[0].get(), 0, 0, POSIX_FADV_DONTNEED); }
  void expect_loaded(const std::vector<uint32_t>& batch) {
    const std::vector<Outcome<Fd>> loaded = graph_.load(batch);
    ASSERT_EQ(loaded.size(), batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      std::string expected;
      for (const FileRange& it : graph_.layout.ranges) {
        if (it.partition == graph_.units.partition_of(batch[i])) {
          expected += bytes_.substr(it.offset, it.length_bytes);
        }
      }
      expected = expected.substr(graph_.units.offset_of(batch[i]), graph_.units.bytes_of(batch[i]));
      ASSERT_TRUE(loaded[i]) << loaded[i].error().text;
      ASSERT_EQ(*sealed_size(loaded[i]->get()), expected.size());
      std::string got(expected.size(), '\0');
      EXPECT_TRUE(pread_full(loaded[i]->get(), got.data(), got.size(), 0));
      EXPECT_TRUE(got == expected) << "unit " << batch[i];
    }
  }

  std::string path_;
  std::string bytes_;
  GraphFiles graph_;
};

TEST_F(GraphFilesTest, ReadsUncachedRangesCorrectly) {
  if (!graph_.direct[0]) GTEST_SKIP() << "no O_DIRECT in " << path_;
  const uint64_t size_bytes = bytes_.size();
  lay_out({{0, 0, 0, 7},
           {1, 0, 7, 4089},
           {2, 0, 4096, 8},
           {3, 0, 4104, 20'000'000},
           {4, 0, 20'004'104, size_bytes - 20'004'104},  // to the file's end
           // two pieces, the second one first
           {6, 0, 30'000'000, 16},
           {6, 0, 1000, 16}});
  for (const std::vector<uint32_t>& batch :
       {std::vector<uint32_t>{0, 1, 2, 3, 4}, {4, 2, 0}, {5}, {6}, {3, 6, 1}}) {
    forget_cached();
    expect_loaded(batch);
  }
}

TEST_F(GraphFilesTest, AUnitSpansThePiecesOfItsPartition) {
  // The first partition has pieces of 10, 5000 and 100 bytes, the second one none, the third one
  // one.
  lay_out({{0, 0, 700, 10}, {0, 0, 90'000, 5000}, {0, 0, 0, 100}, {2, 0, 8192, 8192}}, 1000);
  ASSERT_EQ(graph_.units.count(), 6u + 1 + 9);
  for (uint32_t unit = 0; unit < graph_.units.count(); ++unit) expect_loaded({unit});
  forget_cached();
  expect_loaded({0, 1, 2, 3, 4, 5});
  // The second unit goes on where the first ends.
  EXPECT_EQ(graph_.runs(std::vector<uint32_t>{0, 1, 4, 5}).size(), 2u);
}

TEST_F(GraphFilesTest, RunsAreAdjacentRanges) {
  using Runs = std::vector<std::vector<uint32_t>>;
  lay_out({{0, 0, 0, 7}, {1, 0, 7, 4089}, {2, 0, 5000, 8}, {4, 0, 5008, 1}, {5, 1, 5009, 1}});
  const auto runs = [&](std::vector<uint32_t> batch) { return graph_.runs(batch); };
  EXPECT_EQ(runs({0, 1, 2, 4, 5}), (Runs{{0, 1}, {2, 4}, {5}}));
  EXPECT_EQ(runs({1, 0}), (Runs{{1}, {0}}));
  EXPECT_EQ(runs({0, 2}), (Runs{{0}, {2}}));
  EXPECT_EQ(runs({2, 3, 4}), (Runs{{2}, {3}, {4}}));  // 3 has no bytes
  EXPECT_EQ(runs({}), Runs{});
}

TEST_F(GraphFilesTest, ReadsCachedRangesCorrectly) {
  lay_out({{0, 0, 5, 10'000'000}, {1, 0, 10'000'005, 3}});
  expect_loaded({0, 1});
  graph_.direct[0] = Fd();  // as if this file had none
  forget_cached();
  expect_loaded({1, 0});
}

TEST_F(GraphFilesTest, ATruncatedFileFailsTheUnitsThatItLacks) {
  lay_out({{0, 0, 0, 4096}, {1, 0, 39'000'000, 1'000'000}});
  ASSERT_EQ(::truncate(path_.c_str(), 39'500'000), 0);
  graph_.identities[0] = *identify(graph_.files[0].get());
  forget_cached();
  const std::vector<uint32_t> batch{0, 1};
  const std::vector<Outcome<Fd>> loaded = graph_.load(batch);
  EXPECT_TRUE(loaded[0]);
  ASSERT_FALSE(loaded[1]);
  EXPECT_EQ(loaded[1].error().code, ESTALE);
  EXPECT_EQ(loaded[1].error().text, "graph: byte 39500000: cut short while jobs use it");
}

}  // namespace
}  // namespace graphlane::share
