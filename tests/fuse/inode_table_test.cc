#include "fuse/inode_table.h"

#include <thread>

#include "tests/fuse/temporary_volume.h"

namespace graphlane {
namespace {

Inode& acquire(InodeTable& table, const std::string& path) {
  Fd fd = open_path(path);
  const struct stat st = attributes(fd);
  return table.acquire(std::move(fd), st, false);
}

TEST(InodeTableTest, OneFileIsOneInodeByWhateverName) {
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

TEST(InodeTableTest, AnInodeLivesUntilTheLastLookupIsForgotten) {
  const TemporaryVolume volume;
  volume.write("a", "a");
  InodeTable table((*volume).root_fd());
  Inode& a = acquire(table, volume.path("a"));
  acquire(table, volume.path("a"));
  const int fd = a.fd.get();
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
  EXPECT_NE(::fcntl(table.root().fd.get(), F_GETFD), -1);
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
}  // namespace graphlane
