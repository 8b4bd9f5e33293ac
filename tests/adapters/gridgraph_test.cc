// The stand-alone parts of the gridgraph headers agree with simple models.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "core/atomic.hpp"
#include "core/bigvector.hpp"
#include "core/bitmap.hpp"
#include "core/filesystem.hpp"
#include "core/partition.hpp"
#include "core/queue.hpp"
#include "core/threads.hpp"
#include "graphfmt/grid/grid_layout.h"

namespace graphlane {
namespace {

TEST(GridgraphBitmapTest, AgreesWithASet) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const size_t size = random() % 200 + 1;
    Bitmap bitmap(size);
    std::set<size_t> set;
    for (size_t n = random() % 10; n > 0; --n) {
      const size_t bit = random() % size;
      bitmap.set_bit(bit);
      set.insert(bit);
    }
    for (size_t bit = 0; bit < size; ++bit) ASSERT_EQ(bitmap.get_bit(bit) != 0, set.contains(bit));
    const size_t begin = random() % (size + 1);
    const size_t end = begin + random() % (size + 1 - begin);
    ASSERT_EQ(bitmap.any(begin, end), set.lower_bound(begin) != set.lower_bound(end));
    bitmap.fill();
    ASSERT_TRUE(bitmap.get_bit(size - 1));
    bitmap.clear();
    ASSERT_FALSE(bitmap.any(0, size));
  }
}

TEST(GridgraphPartitionTest, EqualsTheGridsPartition) {
  for (const size_t vertices : {1, 7, 10, 100, 1001}) {
    for (const size_t partitions : {1, 2, 3, 4, 7, 10}) {
      const graphfmt::GridLayout layout(vertices, static_cast<uint32_t>(partitions));
      for (size_t v = 0; v < vertices; ++v) {
        const size_t p = get_partition_id(vertices, partitions, v);
        ASSERT_EQ(p, layout.partition_of(static_cast<uint32_t>(v)));
        const auto range = get_partition_range(vertices, partitions, p);
        ASSERT_TRUE(range.first <= v && v < range.second);
      }
    }
  }
}

TEST(GridgraphPartitionTest, HasRoomForEdges) {
  const size_t edges = 3'000'000'001;
  const auto last = get_partition_range(edges, 7, 6);
  EXPECT_EQ(last.second, edges);
  EXPECT_EQ(last.first, get_partition_range(edges, 7, 5).second);
  EXPECT_EQ(get_partition_id(edges, 7, last.first), 6u);
}

TEST(GridgraphAtomicTest, LosesNoConcurrentUpdate) {
  float sum = 0;
  int lowest = 1000;
  int owner = -1;
  {
    graphlane_gridgraph::Threads threads;
    std::atomic<int> owners{0};
    threads.run(1000, threads.count(), [&](size_t i) {
      write_add(&sum, 1.0f);
      write_min(&lowest, static_cast<int>(i));
      if (cas(&owner, -1, static_cast<int>(i))) ++owners;
    });
    EXPECT_EQ(owners, 1);
  }
  EXPECT_EQ(sum, 1000);
  EXPECT_EQ(lowest, 0);
  EXPECT_FALSE(write_min(&lowest, 0));
}

// A single writer needs no locked instructions.
TEST(GridgraphAtomicTest, OneWriterGetsTheSameResults) {
  const graphlane_gridgraph::OneWriter one;
  float sum = 0.5f;
  write_add(&sum, 1.0f);
  EXPECT_EQ(sum, 1.5f);
  int lowest = 3;
  EXPECT_TRUE(write_min(&lowest, 2));
  EXPECT_FALSE(write_min(&lowest, 2));
  EXPECT_EQ(lowest, 2);
  int owner = -1;
  EXPECT_TRUE(cas(&owner, -1, 7));
  EXPECT_FALSE(cas(&owner, -1, 8));
  EXPECT_EQ(owner, 7);
  float zero = 0.0f;
  EXPECT_FALSE(cas(&zero, -0.0f, 1.0f)) << "bits are compared";
  Bitmap bitmap(100);
  bitmap.set_bit(3);
  bitmap.set_bit(70);
  EXPECT_TRUE(bitmap.get_bit(3) && bitmap.get_bit(70));
}

TEST(GridgraphThreadsTest, RunEachPieceOnce) {
  graphlane_gridgraph::Threads threads;
  for (size_t count = 0; count < 200; ++count) {
    for (unsigned thread_count = 1; thread_count <= threads.count() + 1; ++thread_count) {
      std::vector<std::atomic<int>> done(count);
      threads.run(count, thread_count, [&](size_t i) { ++done[i]; });
      for (const auto& times : done) ASSERT_EQ(times, 1);
    }
  }
}

TEST(GridgraphThreadsTest, OneThreadIsTheCaller) {
  graphlane_gridgraph::Threads threads;
  threads.run(100, 1, [caller = std::this_thread::get_id()](size_t) {
    ASSERT_EQ(std::this_thread::get_id(), caller);
    ASSERT_TRUE(graphlane_gridgraph::is_one_writer());
  });
  threads.run(100, 2, [&](size_t) {
    ASSERT_EQ(graphlane_gridgraph::is_one_writer(), threads.count() == 1);
  });
  EXPECT_FALSE(graphlane_gridgraph::is_one_writer());
}

TEST(GridgraphQueueTest, KeepsOrderAndCapacity) {
  Queue<int> queue(2);
  EXPECT_TRUE(queue.is_empty());
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) queue.push(i);
  });
  for (int i = 0; i < 100; ++i) ASSERT_EQ(queue.pop(), i);
  producer.join();
  queue.push(1);
  queue.push(2);
  EXPECT_TRUE(queue.is_full());
}

class GridgraphFileTest : public testing::Test {
 protected:
  GridgraphFileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "gridgraph-XXXXXX").string();
    dir_ = ::mkdtemp(name.data());
  }
  ~GridgraphFileTest() override { std::filesystem::remove_all(dir_); }
  std::string dir_;
};

TEST_F(GridgraphFileTest, AVectorMapsItsFile) {
  const std::string path = dir_ + "/vector";
  {
    BigVector<int> vector(path, 1000);
    vector.fill(7);
    vector[3] = 9;
    vector.load(0, 1000);
    vector.lock(10, 20);
    vector.unlock(10, 20);
  }
  EXPECT_EQ(file_size(path), 4000);
  BigVector<int> again(path, 1000);
  EXPECT_EQ(again[3], 9);
  EXPECT_EQ(again[4], 7);
}

TEST_F(GridgraphFileTest, AnotherLengthReplacesIt) {
  const std::string path = dir_ + "/vector";
  std::ofstream(path) << std::string(5000, 'x');
  BigVector<unsigned long[2]> vector(path, 100);
  EXPECT_EQ(file_size(path), 1600);
  EXPECT_EQ(vector[99][1], 0u);
}

TEST_F(GridgraphFileTest, ASecondJobHasItsOwnVector) {
  const std::string path = dir_ + "/vector";
  BigVector<int> first(path, 10);
  first.fill(1);
  BigVector<int> second(path, 10);
  second.fill(2);
  EXPECT_EQ(first[5], 1);
  EXPECT_EQ(second[5], 2);
}

TEST_F(GridgraphFileTest, RemovingADirectoryDoesNotFollowLinks) {
  ASSERT_TRUE(create_directory(dir_ + "/a"));
  ASSERT_TRUE(create_directory(dir_ + "/a"));
  std::ofstream(dir_ + "/keep") << "x";
  std::filesystem::create_directory_symlink(dir_, dir_ + "/a/link");
  ASSERT_TRUE(remove_directory(dir_ + "/a"));
  EXPECT_FALSE(file_exists(dir_ + "/a"));
  EXPECT_TRUE(file_exists(dir_ + "/keep"));
}

}  // namespace
}  // namespace graphlane
