#include "fuse/inode/striped.h"

#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "tests/fuse/temporary_volume.h"

namespace graphlane::fuse {
namespace {

StubView look(StubCache& cache, const TemporaryVolume& volume, const std::string& name) {
  const Fd fd = open_path(volume.path(name));
  return cache.look(fd.get(), attributes(fd));
}

TEST(StubCacheTest, TellsStubsPlainFilesAndDamagedStubsApart) {
  const TemporaryVolume volume;
  const Layout layout = volume.add_striped("striped", 50'000);
  volume.write("empty", "");
  volume.write("plain", std::string(4096, 'p'));
  volume.write("large", std::string(5000, 'p'));
  const StubBytes stub = encode_stub(layout);
  volume.write("cut", std::string(reinterpret_cast<const char*>(stub.data()), 100));
  EXPECT_EQ(look(*std::make_unique<StubCache>(), volume, "striped").layout, layout);
  for (const char* plain : {"empty", "plain", "large"}) {
    EXPECT_TRUE(look(*std::make_unique<StubCache>(), volume, plain).plain()) << plain;
  }
  EXPECT_EQ(look(*std::make_unique<StubCache>(), volume, "cut").verdict, StubVerdict::kCutShort);
}

// Without a free descriptor the kind of the file is unknown. A stub taken for a plain file would be
// overwritten.
TEST(StubCacheTest, AReadErrorIsNotCachedAsAPlainFile) {
  const TemporaryVolume volume;
  volume.add_striped("striped", 50'000);
  const Fd path = open_path(volume.path("striped"));
  const struct stat st = attributes(path);
  StubCache cache;
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const StubView blind = cache.look(path.get(), st);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(blind.error, EMFILE);
  EXPECT_FALSE(blind.plain());
  EXPECT_FALSE(blind.striped());
  EXPECT_TRUE(cache.look(path.get(), st).striped());
}

TEST(StubCacheTest, RereadsAChangedFile) {
  const TemporaryVolume volume;
  const Layout first = volume.add_striped("f", 50'000);
  StubCache cache;
  EXPECT_EQ(look(cache, volume, "f").layout, first);
  ::usleep(20'000);  // a tick of the filesystem's clock
  const Layout second = volume.add_striped("f", 60'000);
  EXPECT_EQ(look(cache, volume, "f").layout, second);
  ::usleep(20'000);
  volume.write("f", "plain now");
  EXPECT_TRUE(look(cache, volume, "f").plain());
}

TEST(StubCacheTest, SharesPartsThatAreOpen) {
  const TemporaryVolume volume;
  const Layout layout = volume.add_striped("f", 50'000);
  StubCache cache;
  EXPECT_EQ(cache.opened(layout.file_id), nullptr);
  auto file = StripedFile::open(*volume, open_path(volume.path("f")).get(), layout, "f");
  ASSERT_TRUE(file);
  cache.remember(*file);
  EXPECT_EQ(cache.opened(layout.file_id), *file);
  file->reset();
  EXPECT_EQ(cache.opened(layout.file_id), nullptr);
}

TEST(StubCacheTest, ConcurrentOpensShareOneResult) {
  const TemporaryVolume volume;
  const Layout layout = volume.add_striped("f", 50'000);
  StubCache cache;
  auto first = StripedFile::open(*volume, open_path(volume.path("f")).get(), layout, "f");
  auto second = StripedFile::open(*volume, open_path(volume.path("f")).get(), layout, "f");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(cache.share(*first), *first);
  EXPECT_EQ(cache.share(*second), *first);
  first->reset();
  EXPECT_EQ(cache.share(*second), *second);
  const Layout other = volume.add_striped("f", 50'000);
  const auto another = StripedFile::open(*volume, open_path(volume.path("f")).get(), other, "f");
  ASSERT_TRUE(another);
  EXPECT_EQ(cache.share(*another), *another);
}

struct stat stat_of(long mtime, long ctime, off_t size = 0) {
  struct stat st = {};
  st.st_mtim.tv_nsec = mtime;
  st.st_ctim.tv_nsec = ctime;
  st.st_size = size;
  return st;
}

TEST(StubCacheTest, KnowsWhetherTheKernelsPagesAreValid) {
  StubCache cache;
  const Uuid first = Uuid::random(), second = Uuid::random();
  const auto same = [&](const Uuid& id, long mtime, long ctime, off_t size = 0) {
    return cache.same_content(id, stat_of(mtime, ctime, size), false);
  };
  EXPECT_TRUE(same(first, 1, 1));  // nothing is cached yet that could be wrong
  EXPECT_TRUE(same(first, 1, 1));
  EXPECT_FALSE(same(first, 2, 2));  // another process wrote it
  EXPECT_FALSE(same(second, 2, 2));
  EXPECT_TRUE(same(second, 2, 3));  // it was closed, or its mode has changed
  EXPECT_FALSE(same(Uuid{}, 2, 3));
  EXPECT_FALSE(same(Uuid{}, 2, 4));  // written, and the mtime set back
  EXPECT_FALSE(same(Uuid{}, 2, 4, 100));
  EXPECT_TRUE(same(Uuid{}, 2, 4, 100));
  EXPECT_FALSE(same(second, 2, 4));
}

// The kernel's clock stands still for some milliseconds.
TEST(StubCacheTest, RereadsAFileChangedWithinTheClocksGranularity) {
  struct stat now = {};
  ::clock_gettime(CLOCK_REALTIME, &now.st_ctim);
  now.st_mtim = now.st_ctim;
  StubCache others, ours;
  EXPECT_TRUE(others.same_content(Uuid{}, now, false));
  EXPECT_TRUE(ours.same_content(Uuid{}, now, true));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(others.same_content(Uuid{}, now, false)) << "once more";
  EXPECT_TRUE(others.same_content(Uuid{}, now, false));
  EXPECT_TRUE(ours.same_content(Uuid{}, now, false));
}

TEST(StripedTest, AnOpenFilesSizeFollowsItsPartsWithinItsBound) {
  const TemporaryVolume volume;
  Layout layout = volume.add_striped("f", 50'001, FileState::kOpen);
  layout.logical_size = kNoBound;
  EXPECT_EQ(current_layout(*volume, layout).logical_size, 50'001u);
  layout.logical_size = 7;
  EXPECT_EQ(current_layout(*volume, layout).logical_size, 7u);
  layout.state = FileState::kClosed;
  EXPECT_EQ(current_layout(*volume, layout).logical_size, 7u);
}

TEST(StripedTest, RemovesThePartsWithTheLastLink) {
  const TemporaryVolume volume;
  const Layout layout = volume.add_striped("a", 50'000);
  std::filesystem::create_hard_link(volume.path("a"), volume.path("b"));
  for (const auto& [name, left] : {std::pair{"a", 3u}, std::pair{"b", 0u}}) {
    LastLink victim(*volume, (*volume).root_fd(), name);
    std::filesystem::remove(volume.path(name));
    EXPECT_EQ(victim.reap(), left == 0) << name;
    EXPECT_EQ(volume.count_parts(layout), left) << name;
  }
}

TEST(StripedTest, AnExistingFileKeepsItsParts) {
  const TemporaryVolume volume;
  const Layout layout = volume.add_striped("a", 50'000);
  EXPECT_FALSE(LastLink(*volume, (*volume).root_fd(), "a").reap());  // no rename happened
  EXPECT_FALSE(LastLink(*volume, (*volume).root_fd(), "absent").reap());
  EXPECT_EQ(volume.count_parts(layout), 3u);
}

TEST(StripedTest, RemovingAForeignStubKeepsTheParts) {
  const TemporaryVolume volume, other;
  const Layout layout = volume.add_striped("a", 50'000);
  std::filesystem::copy_file(volume.path("a"), other.path("a"));
  LastLink victim(*other, (*other).root_fd(), "a");
  std::filesystem::remove(other.path("a"));
  EXPECT_FALSE(victim.reap());
  EXPECT_EQ(volume.count_parts(layout), 3u);
}

// As cp(1) makes one, without a mount in its way.
TEST(StripedTest, RemovingACopiedStubKeepsTheParts) {
  const TemporaryVolume volume;
  const Layout layout = volume.add_striped("a", 50'000);
  std::filesystem::copy_file(volume.path("a"), volume.path("copy"));
  EXPECT_FALSE(StripedFile::open(*volume, open_path(volume.path("copy")).get(), layout, "copy"));
  LastLink victim(*volume, (*volume).root_fd(), "copy");
  std::filesystem::remove(volume.path("copy"));
  EXPECT_FALSE(victim.reap());
  EXPECT_EQ(volume.count_parts(layout), 3u);
}

TEST(StripedTest, SetsTheModeOfEveryPart) {
  const TemporaryVolume volume;
  const Layout layout = volume.add_striped("a", 50'000);
  ASSERT_TRUE(chmod_parts(*volume, layout, attributes(open_path(volume.path("a"))), 06640));
  for (uint32_t d = 0; d < 3; ++d) {
    struct stat st;
    ASSERT_EQ(::stat((*volume).part_path(d, layout.file_id).c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0640u);
  }
}

TEST(StripedTest, SetsTheModeOfEveryPartOrOfNone) {
  const TemporaryVolume volume;
  const Layout layout = volume.add_striped("a", 50'000);
  const struct stat stub = attributes(open_path(volume.path("a")));
  ASSERT_TRUE(chmod_parts(*volume, layout, stub, stub.st_mode));
  std::filesystem::remove((*volume).part_path(2, layout.file_id));
  EXPECT_FALSE(chmod_parts(*volume, layout, stub, stub.st_mode ^ 0222));
  for (uint32_t d = 0; d < 2; ++d) {
    EXPECT_EQ(attributes(open_path((*volume).part_path(d, layout.file_id))).st_mode, stub.st_mode);
  }
}

}  // namespace
}  // namespace graphlane::fuse
