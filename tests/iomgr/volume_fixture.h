// A volume in a temporary directory: devices d0, d1, … beside `vol`.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "iomgr/admin/transfer.h"
#include "iomgr/volume/volume.h"
#include "iomgr/volume/volume_files.h"
#include "tests/iomgr/content.h"

namespace graphlane {

class VolumeFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "graphlane_test_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = std::filesystem::canonical(pattern).string();
  }
  void TearDown() override {
    volume_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string in_volume(const std::string& name) const { return path("vol/" + name); }

  // Makes the directories d0, d1, …
  std::vector<std::string> devices(uint32_t count) const {
    std::vector<std::string> made;
    for (uint32_t d = 0; d < count; ++d) {
      made.push_back(path("d" + std::to_string(d)));
      std::filesystem::create_directories(made.back());
    }
    return made;
  }

  void create_volume(uint32_t device_count = 3, uint64_t depth_bytes = 4096,
                     StripePolicy policy = {.globs = {}, .size_min_bytes = 1}) {
    const auto created = Volume::create({.root = path("vol"),
                                         .devices = devices(device_count),
                                         .stripe_depth_bytes = depth_bytes,
                                         .policy = std::move(policy)});
    ASSERT_TRUE(created) << created.error().text;
    volume_ = *created;
  }

  // Every path below the temporary directory, for "nothing was left behind".
  std::vector<std::string> all_paths() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      paths.push_back(entry.path().string());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  static std::string random_bytes(size_t size, uint64_t seed = 1) {
    std::string bytes(size, '\0');
    fill(bytes.data(), size, seed);
    return bytes;
  }

  static void write(const std::string& path, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }

  static std::string read(const std::string& path) {
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    return std::move(content).str();
  }

  static struct stat stat_of(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
    return info;
  }

  Outcome<TransferSummary> import(const std::string& source, const std::string& destination = "",
                                  bool overwrite = false) const {
    return import_files(*volume_,
                        {.source = source, .destination = destination, .overwrite = overwrite});
  }

  // A program's view of a file of the volume, by export.
  std::string content_of(const std::string& name) const {
    const std::string out = path("exported");
    const auto exported =
        export_files(*volume_, {.source = name, .destination = out, .overwrite = true});
    EXPECT_TRUE(exported) << exported.error().text;
    return read(out);
  }

  Layout layout_of(const std::string& name) const {
    Layout layout;
    const std::string bytes = read(in_volume(name));
    EXPECT_EQ(decode_stub({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, &layout),
              StubVerdict::kStub)
        << name;
    return layout;
  }

  Fd stub_of(const std::string& name) const {
    return Fd(::open(in_volume(name).c_str(), O_RDONLY | O_CLOEXEC));
  }

  std::string part_of(const std::string& name, uint32_t device_index) const {
    return volume_->part_path(device_index, layout_of(name).file_id);
  }

  std::string directory_;
  std::shared_ptr<const Volume> volume_;
};

}  // namespace graphlane
