#include "iomgr/admin/transfer.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <thread>

#include "iomgr/admin/bulk_copy.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/process/interrupt.h"
#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

namespace fs = std::filesystem;

class TransferTest : public VolumeFixture {
 protected:
  // Makes an import that must be refused. The volume and the devices must not change.
  std::string error_of(const ImportOptions& options) {
    const auto before = all_paths();
    const auto imported = import_files(*volume_, options);
    EXPECT_FALSE(imported);
    EXPECT_EQ(all_paths(), before) << "left something behind";
    return imported ? "" : imported.error().text;
  }
};

// Sizes around every stripe boundary, for several geometries: export returns the imported bytes,
// and every part has exactly its share.
TEST_F(TransferTest, ImportThenExportKeepsAllSizesAroundStripes) {
  create_volume(3, 4096);
  for (const uint64_t size :
       {1, 2, 4095, 4096, 4097, 8191, 8192, 12287, 12288, 12289, 40960, 99999}) {
    const std::string bytes = random_bytes(size, size);
    write(path("source"), bytes);
    ASSERT_TRUE(import(path("source"), "file", true));
    EXPECT_EQ(content_of("file"), bytes) << size;
    const Layout layout = layout_of("file");
    for (uint32_t d = 0; d < 3; ++d) {
      EXPECT_EQ(fs::file_size(part_of("file", d)), layout.map().part_size(d, size)) << size;
    }
  }
}

TEST_F(TransferTest, ImportThenExportKeepsALargeFile) {
  create_volume(4, 1 << 20);
  const std::string bytes = random_bytes(5 * kCopyChunk + 12345);
  write(path("source"), bytes);
  ASSERT_TRUE(import(path("source"), "file"));
  EXPECT_EQ(content_of("file"), bytes);
}

// There are no threads at all, or too few for all devices or chunks.
TEST_F(TransferTest, ImportsByAsFewThreadsAsThereAreToBeHad) {
  if (::geteuid() != 0) GTEST_SKIP() << "not applicable: only root can become another user";
  create_volume(3, 1 << 20);
  const std::string bytes = random_bytes(5 * kCopyChunk);
  write(path("source"), bytes);
  for (const std::string& made : all_paths()) ASSERT_EQ(::lchown(made.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chown(directory_.c_str(), 65534, 65534), 0);
  const auto import_as_one_of = [this](rlim_t process_count, const std::string& name) noexcept {
    const rlimit limit{.rlim_cur = process_count, .rlim_max = process_count};
    return ::setresuid(65534, 65534, 65534) == 0 && ::setrlimit(RLIMIT_NPROC, &limit) == 0 &&
           import(path("source"), name);
  };
  for (const rlim_t process_count : {1, 3, 5}) {
    const std::string name = "by" + std::to_string(process_count);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(import_as_one_of(process_count, name) ? 0 : 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << name;
    EXPECT_TRUE(content_of(name) == bytes) << name;
  }
}

TEST_F(TransferTest, KeepsHolesAsHoles) {
  create_volume(2, 4096);
  const Fd fd(::open(path("sparse").c_str(), O_WRONLY | O_CREAT, 0644));
  const uint64_t size = 8 * kCopyChunk + 5;
  ASSERT_TRUE(pwrite_full(fd.get(), "middle", 6, 4 * kCopyChunk + 77));
  ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  ASSERT_TRUE(import(path("sparse"), "file"));
  for (uint32_t d = 0; d < 2; ++d) EXPECT_LE(stat_of(part_of("file", d)).st_blocks * 512, 8 << 20);
  EXPECT_TRUE(content_of("file") == read(path("sparse")));
  EXPECT_LE(stat_of(path("exported")).st_blocks * 512, 8 << 20);
}

TEST_F(TransferTest, KeepsModeTimesAndAttributes) {
  create_volume();
  write(path("source"), random_bytes(10000));
  fs::permissions(path("source"), fs::perms(0640));
  const timespec times[2] = {{1000000000, 5}, {1234567890, 123456789}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path("source").c_str(), times, 0), 0);
  const bool has_xattr = ::setxattr(path("source").c_str(), "user.note", "kept", 4, 0) == 0;
  ASSERT_TRUE(import(path("source"), "file"));
  for (const std::string& copy : {in_volume("file"), (content_of("file"), path("exported"))}) {
    const struct stat info = stat_of(copy);
    EXPECT_EQ(info.st_mode & 07777, 0640u) << copy;
    EXPECT_EQ(info.st_mtim.tv_sec, 1234567890) << copy;
    EXPECT_EQ(info.st_mtim.tv_nsec, 123456789) << copy;
    char note[8] = {};
    const ssize_t length = ::getxattr(copy.c_str(), "user.note", note, sizeof note);
    EXPECT_EQ(length, has_xattr ? 4 : -1) << copy;
  }
}

TEST_F(TransferTest, PartsAreOpenToThoseWhoMayReadTheStub) {
  create_volume();
  write(path("source"), random_bytes(10000));
  for (const unsigned mode : {0600u, 0644u, 0440u}) {
    fs::permissions(path("source"), fs::perms(mode));
    ASSERT_TRUE(import(path("source"), "file", true));
    EXPECT_EQ(stat_of(part_of("file", 0)).st_mode & 07777, mode);
    EXPECT_EQ(stat_of(part_of("file", 0)).st_uid, stat_of(in_volume("file")).st_uid);
  }
}

TEST_F(TransferTest, CopiesATreeAsCpDoes) {
  create_volume(2, 4096, {.globs = {"big*"}, .size_min_bytes = 5000});
  write(path("tree/big"), random_bytes(20000));
  write(path("tree/big_but_small"), "small");
  write(path("tree/other"), random_bytes(20000));
  write(path("tree/empty"), "");
  fs::create_directory(path("tree/directory"));
  fs::permissions(path("tree/directory"), fs::perms(0711));
  fs::create_symlink("../big", path("tree/directory/link"));
  fs::create_hard_link(path("tree/big"), path("tree/directory/hard"));
  ASSERT_EQ(::mkfifo(path("tree/fifo").c_str(), 0600), 0);

  const auto summary = import(path("tree"));
  ASSERT_TRUE(summary) << summary.error().text;
  EXPECT_EQ(summary->striped_count, 1u);
  EXPECT_EQ(summary->plain_count, 3u);
  EXPECT_EQ(layout_of("tree/big").logical_size, 20000u);
  EXPECT_EQ(read(in_volume("tree/other")), read(path("tree/other")));
  EXPECT_EQ(read(in_volume("tree/big_but_small")), "small");
  EXPECT_EQ(fs::file_size(in_volume("tree/empty")), 0u);
  EXPECT_EQ(stat_of(in_volume("tree/directory")).st_mode & 0777, 0711u);
  EXPECT_EQ(fs::read_symlink(in_volume("tree/directory/link")), "../big");
  EXPECT_EQ(stat_of(in_volume("tree/directory/hard")).st_ino,
            stat_of(in_volume("tree/big")).st_ino);
  EXPECT_TRUE(S_ISFIFO(stat_of(in_volume("tree/fifo")).st_mode));

  const auto exported = export_files(*volume_, {.source = "tree", .destination = path("back")});
  ASSERT_TRUE(exported) << exported.error().text;
  EXPECT_EQ(read(path("back/big")), read(path("tree/big")));
  EXPECT_EQ(stat_of(path("back/directory/hard")).st_ino, stat_of(path("back/big")).st_ino);
}

TEST_F(TransferTest, NamesTheCopyAsCpDoes) {
  create_volume();
  write(path("dir/a"), "aaaa");
  write(path("file"), "ffff");
  ASSERT_TRUE(import(path("dir"), "new"));  // a missing target names the copy
  EXPECT_TRUE(fs::exists(in_volume("new/a")));
  ASSERT_TRUE(import(path("dir"), "new"));  // an existing target contains it
  EXPECT_TRUE(fs::exists(in_volume("new/dir/a")));
  ASSERT_TRUE(import(path("dir/."), "", true));  // only the contents
  EXPECT_TRUE(fs::exists(in_volume("a")));
  ASSERT_TRUE(import(path("file"), "new/"));
  EXPECT_TRUE(fs::exists(in_volume("new/file")));
  EXPECT_NE(error_of({.source = path("file"), .destination = "absent/"}).find("not a directory"),
            std::string::npos);
  EXPECT_NE(error_of({.source = path("file"), .destination = "no/such/x"}).find("No such file"),
            std::string::npos);
}

TEST_F(TransferTest, MergesADirectoryAndKeepsWhatIsThere) {
  create_volume();
  write(in_volume("dir/mine"), "mine");
  write(path("dir/theirs"), "theirs");
  ASSERT_TRUE(import(path("dir")));
  EXPECT_EQ(read(in_volume("dir/mine")), "mine");
  EXPECT_EQ(content_of("dir/theirs"), "theirs");
}

TEST_F(TransferTest, RefusesToOverwriteUnasked) {
  create_volume();
  write(path("dir/a"), "new");
  write(path("dir/b"), "new");
  write(in_volume("dir/b"), "old");
  EXPECT_NE(error_of({.source = path("dir")}).find(in_volume("dir/b") + ": exists already"),
            std::string::npos);
  EXPECT_EQ(read(in_volume("dir/b")), "old");
}

TEST_F(TransferTest, RefusesAFileForADirectoryAndTheReverse) {
  create_volume();
  write(path("x/y"), "1");
  write(in_volume("x"), "file");
  EXPECT_NE(error_of({.source = path("x"), .overwrite = true}).find("is not a directory"),
            std::string::npos);
  fs::create_directories(in_volume("d/z"));
  write(path("z"), "file");
  EXPECT_NE(
      error_of({.source = path("z"), .destination = "d", .overwrite = true}).find("is a directory"),
      std::string::npos);
}

TEST_F(TransferTest, OverwritingRemovesTheOldParts) {
  create_volume();
  write(path("a"), random_bytes(50000, 1));
  ASSERT_TRUE(import(path("a"), "file"));
  const std::string old_part = part_of("file", 0);
  write(path("a"), random_bytes(60000, 2));
  ASSERT_TRUE(import(path("a"), "file", true));
  EXPECT_FALSE(fs::exists(old_part));
  EXPECT_EQ(content_of("file"), read(path("a")));
}

TEST_F(TransferTest, OverwritingOneNameLeavesThePartsToTheOthers) {
  create_volume();
  const std::string bytes = random_bytes(50000, 1);
  write(path("a"), bytes);
  ASSERT_TRUE(import(path("a"), "file"));
  fs::create_hard_link(in_volume("file"), in_volume("second"));
  write(path("a"), "other");
  ASSERT_TRUE(import(path("a"), "file", true));
  EXPECT_EQ(content_of("second"), bytes);
}

TEST_F(TransferTest, RotatesTheFirstDevice) {
  create_volume(3);
  for (const char* name : {"tree/a", "tree/b", "tree/c"}) write(path(name), "x");
  ASSERT_TRUE(import(path("tree")));
  const uint32_t a = layout_of("tree/a").geometry.first_device;
  EXPECT_EQ(layout_of("tree/b").geometry.first_device, (a + 1) % 3);
  EXPECT_EQ(layout_of("tree/c").geometry.first_device, (a + 2) % 3);
}

// Parts stay open until they are synced. Their number has a limit below the number of files.
TEST_F(TransferTest, ImportsMoreFilesThanMayBeOpen) {
  create_volume(3);
  constexpr int kFiles = 200;
  const auto name = [](int i) { return "tree/" + std::to_string(i); };
  for (int i = 0; i < kFiles; ++i) write(path(name(i)), random_bytes(9000, i));
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 2 * kFiles, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto summary = import(path("tree"));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(summary) << summary.error().text;
  EXPECT_EQ(summary->striped_count, static_cast<uint64_t>(kFiles));
  for (int i = 0; i < kFiles; ++i) EXPECT_EQ(content_of(name(i)), read(path(name(i))));
}

TEST_F(TransferTest, RefusesADepthLargerThanTheFile) {
  create_volume();
  write(path("source"), random_bytes(10000));
  EXPECT_EQ(error_of({.source = path("source"), .stripe_depth_bytes = 12288}),
            path("source") + ": has 10000 bytes, less than one stripe of 12288");
  EXPECT_NE(error_of({.source = path("source"), .stripe_depth_bytes = 1000}).find("multiple"),
            std::string::npos);
}

TEST_F(TransferTest, RefusesToTakeFromTheVolumeItself) {
  create_volume();
  write(in_volume("plain"), "x");
  EXPECT_EQ(error_of({.source = in_volume("plain"), .destination = "copy"}),
            in_volume("plain") + ": lies inside the volume already");
  EXPECT_EQ(error_of({.source = directory_}), directory_ + ": contains the volume");
  EXPECT_NE(error_of({.source = path("d0"), .destination = "copy"}).find("holds parts"),
            std::string::npos);
}

TEST_F(TransferTest, RefusesStubsAsData) {
  create_volume();
  write(path("source"), random_bytes(10000));
  ASSERT_TRUE(import(path("source"), "file"));
  fs::copy_file(in_volume("file"), path("stub"));
  EXPECT_NE(error_of({.source = path("stub")}).find(path("stub") + ": is a stub"),
            std::string::npos);
}

TEST_F(TransferTest, RefusesTheControlDirectory) {
  create_volume();
  write(path("source"), "x");
  EXPECT_NE(error_of({.source = path("source"), .destination = ".graphlane/x"}).find("own"),
            std::string::npos);
  write(path("tree/.graphlane/volume.json"), "{}");
  EXPECT_NE(error_of({.source = path("tree/."), .overwrite = true}).find("own"), std::string::npos);
}

TEST_F(TransferTest, LeavesNothingWhenAFileOfTheTreeCannotBeRead) {
  if (::geteuid() == 0) {
    // Root reads everything; a stub among the data is refused as late.
    create_volume();
    write(path("tree/a"), random_bytes(50000));
    write(path("stub"), random_bytes(5000));
    ASSERT_TRUE(import(path("stub")));
    fs::copy_file(in_volume("stub"), path("tree/b"));
  } else {
    create_volume();
    write(path("tree/a"), random_bytes(50000));
    write(path("tree/b"), "secret");
    fs::permissions(path("tree/b"), fs::perms(0));
  }
  EXPECT_NE(error_of({.source = path("tree")}).find(path("tree/b")), std::string::npos);
}

TEST_F(TransferTest, LeavesNothingWhenInterrupted) {
  create_volume(2, 4096);
  const Fd fd(::open(path("big").c_str(), O_WRONLY | O_CREAT, 0644));
  const std::string chunk = random_bytes(kCopyChunk);
  for (int i = 0; i < 32; ++i) ASSERT_TRUE(write_full(fd.get(), chunk.data(), chunk.size()));
  interrupt_requested = true;
  EXPECT_EQ(error_of({.source = path("big")}), "interrupted");

  interrupt_requested = false;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    interrupt_requested = true;
  });
  const auto imported = import(path("big"));
  later.join();
  interrupt_requested = false;
  EXPECT_EQ(fs::exists(in_volume("big")), imported.has_value());
  EXPECT_TRUE(fs::is_empty(in_volume(".graphlane/tmp")));
}

TEST_F(TransferTest, ExportRefusesDamageAndNamesIt) {
  create_volume();
  write(path("source"), random_bytes(50000));
  ASSERT_TRUE(import(path("source"), "file"));
  const auto export_error = [&] {
    const auto exported = export_files(*volume_, {.source = "file", .destination = path("out")});
    EXPECT_FALSE(exported);
    EXPECT_FALSE(fs::exists(path("out")));
    return exported ? "" : exported.error().text;
  };
  const std::string part = part_of("file", 1);
  fs::resize_file(part, fs::file_size(part) - 1);
  EXPECT_NE(export_error().find(part), std::string::npos);
  fs::remove(part);
  EXPECT_NE(export_error().find(part), std::string::npos);
  std::string stub = read(in_volume("file"));
  stub[100] = 'x';
  write(in_volume("file"), stub);
  EXPECT_EQ(export_error(), in_volume("file") + ": stub checksum mismatch");
  write(in_volume("file"), stub + "x");
  EXPECT_EQ(export_error(), in_volume("file") + ": stub is not 4096 bytes long");
}

TEST_F(TransferTest, ExportRefusesToWriteIntoTheVolume) {
  create_volume();
  write(path("source"), "x");
  ASSERT_TRUE(import(path("source"), "file"));
  const auto exported =
      export_files(*volume_, {.source = "file", .destination = in_volume("copy")});
  ASSERT_FALSE(exported);
  EXPECT_NE(exported.error().text.find("lies inside the volume"), std::string::npos);
}

TEST_F(TransferTest, ExportOfTheVolumeLeavesTheControlDirectoryOut) {
  create_volume();
  write(path("source"), "x");
  ASSERT_TRUE(import(path("source"), "file"));
  ASSERT_TRUE(export_files(*volume_, {.source = "", .destination = path("out")}));
  EXPECT_EQ(read(path("out/file")), "x");
  EXPECT_FALSE(fs::exists(path("out/.graphlane")));
}

TEST_F(TransferTest, RemovingTakesThePartsAlong) {
  create_volume();
  write(path("tree/sub/a"), random_bytes(50000));
  ASSERT_TRUE(import(path("tree")));
  const std::string part = part_of("tree/sub/a", 0);
  const auto refused = remove_files(*volume_, "tree", false);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("is a directory"), std::string::npos);
  ASSERT_TRUE(remove_files(*volume_, "tree", true));
  EXPECT_FALSE(fs::exists(in_volume("tree")));
  EXPECT_FALSE(fs::exists(part));
}

TEST_F(TransferTest, RemovingOneNameLeavesThePartsToTheOthers) {
  create_volume();
  const std::string bytes = random_bytes(50000);
  write(path("a"), bytes);
  ASSERT_TRUE(import(path("a"), "a"));
  fs::create_hard_link(in_volume("a"), in_volume("b"));
  ASSERT_TRUE(remove_files(*volume_, "a", false));
  EXPECT_EQ(content_of("b"), bytes);
  const std::string part = part_of("b", 0);
  ASSERT_TRUE(remove_files(*volume_, "b", false));
  EXPECT_FALSE(fs::exists(part));
}

// cp(1) makes such a copy in the volume's directory.
TEST_F(TransferTest, ACopyOfAStubKeepsTheParts) {
  create_volume();
  const std::string bytes = random_bytes(50000);
  write(path("d/a"), bytes);
  ASSERT_TRUE(import(path("d")));
  const std::string part = part_of("d/a", 0);
  fs::copy_file(in_volume("d/a"), in_volume("copy"));
  ASSERT_TRUE(remove_files(*volume_, "copy", false));
  EXPECT_EQ(content_of("d/a"), bytes);
  fs::copy_file(in_volume("d/a"), in_volume("copy"));
  ASSERT_TRUE(import(path("d/a"), "copy", true));
  EXPECT_EQ(content_of("d/a"), bytes);
  fs::copy_file(in_volume("d/a"), in_volume("d/b"));
  ASSERT_TRUE(remove_files(*volume_, "d", true));
  EXPECT_FALSE(fs::exists(part)) << "with the last one";
  EXPECT_EQ(content_of("copy"), bytes);
}

TEST_F(TransferTest, ACopiedStubDoesNotKeepTheParts) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  create_volume();
  write(path("a"), random_bytes(50000));
  ASSERT_TRUE(import(path("a"), "a"));
  const std::string part = part_of("a", 0);
  fs::copy_file(in_volume("a"), in_volume("another's"));
  ASSERT_EQ(::chown(in_volume("another's").c_str(), 1234, 1234), 0);
  ASSERT_TRUE(remove_files(*volume_, "a", false));
  EXPECT_FALSE(fs::exists(part));
}

TEST_F(TransferTest, RemovingRefusesTheVolumeAndDamagedStubs) {
  create_volume();
  EXPECT_FALSE(remove_files(*volume_, "", true));
  EXPECT_FALSE(remove_files(*volume_, ".graphlane", true));
  EXPECT_FALSE(remove_files(*volume_, "../d0", true));
  write(path("a"), random_bytes(50000));
  ASSERT_TRUE(import(path("a"), "dir"));
  std::string stub = read(in_volume("dir"));
  stub[20] ^= 1;
  write(in_volume("dir"), stub);
  const auto refused = remove_files(*volume_, "dir", false);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("checksum mismatch"), std::string::npos);
  EXPECT_TRUE(fs::exists(in_volume("dir")));
}

}  // namespace
}  // namespace graphlane
