#include "fuse/inode/inode_table.h"

#include <thread>

#include "tests/fuse/temporary_volume.h"

namespace graphlane::fuse {
namespace {

Inode& acquire(InodeTable& table, const std::string& path) {
  Fd fd = open_path(path);
  const struct stat st = attributes(fd);
  return table.acquire(std::move(fd), st, false);
}

TEST(InodeTableTest, OneFileHasOneInodeUnderEveryName) {
  const TemporaryVolume volume;
  volume.write("a", "a");
  std::filesystem::create_hard_link(volume.path("a"), volume.path("b"));
  volume.write("c", "c");
  InodeTable table((*volume).root_fd());
  Inode& a = acquire(table, volume.path("a"));
  EXPECT_EQ(&acquire(table, volume.path("b")), &a);
  EXPECT_NE(&acquire(table, volume.path("c")), &a);
  EXPECT_EQ(a.lookup_count, 2u);
  EXPECT_EQ(&table.of(a.nodeid), &a);
  EXPECT_EQ(&table.of(FUSE_ROOT_ID), &table.root());
}

TEST(InodeTableTest, AnInodeLivesUntilItsLastForget) {
  const TemporaryVolume volume;
  volume.write("a", "a");
  InodeTable table((*volume).root_fd());
  Inode& a = acquire(table, volume.path("a"));
  acquire(table, volume.path("a"));
  const int fd = table.path(a)->get();
  table.forget(a.nodeid, 1);
  EXPECT_EQ(a.lookup_count, 1u);
  EXPECT_NE(::fcntl(fd, F_GETFD), -1);
  table.forget(a.nodeid, 1);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

TEST(InodeTableTest, TheRootIsNeverForgotten) {
  const TemporaryVolume volume;
  InodeTable table((*volume).root_fd());
  table.forget(FUSE_ROOT_ID, 1000);
  EXPECT_NE(::fcntl(table.path(table.root())->get(), F_GETFD), -1);
}

// The tests below use inodes without a descriptor of their own.
class InodeTableWithoutRoomTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!table_.handles().usable()) GTEST_SKIP() << "handles: not root, or another filesystem";
  }

  // The file that the inode stands for.
  ino_t number_of(const Inode& inode) {
    const Result<HostPath> path = table_.path(inode);
    struct stat st;
    return path && ::fstat(path->get(), &st) == 0 ? st.st_ino : 0;
  }
  bool is_stale(const Inode& inode) {
    const Result<HostPath> path = table_.path(inode);
    return !path && path.error() == Errno{ESTALE};
  }
  Inode& acquire_new(const std::string& name) {
    volume_.write(name, name);
    return acquire(table_, volume_.path(name));
  }

  const TemporaryVolume volume_;
  InodeTable table_{(*volume_).root_fd(), 0};
};

TEST_F(InodeTableWithoutRoomTest, FindsAFileUnderEveryName) {
  Inode& a = acquire_new("a");
  EXPECT_FALSE(a.fd);
  std::filesystem::rename(volume_.path("a"), volume_.path("b"));
  EXPECT_EQ(&acquire(table_, volume_.path("b")), &a);
  EXPECT_EQ(number_of(a), a.key.number);
}

TEST_F(InodeTableWithoutRoomTest, KeepsAnUnlinkedFile) {
  Inode& a = acquire_new("a");
  table_.keep((*volume_).root_fd(), "a");
  std::filesystem::remove(volume_.path("a"));
  EXPECT_EQ(number_of(a), a.key.number);
}

TEST_F(InodeTableWithoutRoomTest, AReusedInodeNumberIsANewFile) {
  Inode& a = acquire_new("a");
  std::filesystem::remove(volume_.path("a"));
  Inode& b = acquire_new("b");
  if (b.key != a.key) GTEST_SKIP() << "not applicable: the host did not use the number again";
  EXPECT_NE(&b, &a);
  EXPECT_TRUE(is_stale(a));
  EXPECT_EQ(number_of(b), b.key.number);
  table_.forget(a.nodeid, 1);
  EXPECT_EQ(&acquire(table_, volume_.path("b")), &b);
}

TEST_F(InodeTableWithoutRoomTest, ForgetsOtherInodesMeanwhile) {
  Inode& a = acquire_new("a");
  EXPECT_FALSE(table_.crowded());
  table_.forget(acquire_new("b").nodeid, 1);
  table_.forget(a.nodeid, 1);
  Inode& again = acquire(table_, volume_.path("a"));
  EXPECT_EQ(again.lookup_count, 1u);
  EXPECT_EQ(number_of(again), again.key.number);
}

TEST(InodeTableTest, LookupsAndForgetsOfManyThreadsBalance) {
  const TemporaryVolume volume;
  for (int i = 0; i < 4; ++i) volume.write(std::to_string(i), "x");
  InodeTable table((*volume).root_fd());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const std::string path = volume.path(std::to_string(i % 4));
        table.forget(acquire(table, path).nodeid, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(acquire(table, volume.path("0")).lookup_count, 1u);
}

}  // namespace
}  // namespace graphlane::fuse
