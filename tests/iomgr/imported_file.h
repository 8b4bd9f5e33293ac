// A volume over three directories with one striped file, as `graphlane import` makes it, for tests
// that need a whole volume.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "iomgr/admin/transfer.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/volume/parts/striped_file.h"
#include "iomgr/volume/volume.h"
#include "tests/iomgr/content.h"

namespace graphlane {

struct ImportedFile {
  ~ImportedFile() {
    file.reset();
    if (!directory.empty()) std::filesystem::remove_all(directory);
  }

  void make(uint64_t stripe_depth_bytes, uint64_t size_bytes) {
    std::string pattern = ::testing::TempDir() + "graphlane_volume_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory = pattern;
    VolumeOptions options{.root = directory + "/vol",
                          .devices = {},
                          .stripe_depth_bytes = stripe_depth_bytes,
                          .policy = {}};
    for (int d = 0; d < 3; ++d) {
      options.devices.push_back(directory + "/d" + std::to_string(d));
      std::filesystem::create_directory(options.devices.back());
    }
    auto created = Volume::create(options);
    ASSERT_TRUE(created) << created.error().text;
    volume = *created;
    content.resize(size_bytes);
    fill(content.data(), content.size(), /*seed=*/7);
    const std::string source = directory + "/source";
    const Fd fd(::open(source.c_str(), O_WRONLY | O_CREAT, 0600));
    ASSERT_TRUE(write_full(fd.get(), content.data(), content.size()));
    ImportOptions import;
    import.source = source;
    const auto imported = import_files(*volume, import);
    ASSERT_TRUE(imported) << imported.error().text;
    const Fd stub(::open((volume->root() + "/source").c_str(), O_RDONLY));
    Layout layout;
    ASSERT_EQ(*read_stub(stub.get(), kStubSize, &layout), StubVerdict::kStub);
    auto opened = StripedFile::open(*volume, stub.get(), layout, "source");
    ASSERT_TRUE(opened) << opened.error().text;
    file = *opened;
  }

  std::string directory;
  std::string content;
  std::shared_ptr<const Volume> volume;
  std::shared_ptr<const StripedFile> file;
};

}  // namespace graphlane
