// A volume in temporary directories, which are removed with the test.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/volume.h"

namespace graphlane::fuse {

class TemporaryVolume {
 public:
  explicit TemporaryVolume(uint32_t device_count = 3) {
    char pattern[] = "/tmp/graphlane-fuse-test-XXXXXX";
    base_ = ::mkdtemp(pattern);
    VolumeOptions options{
        .root = base_ + "/vol", .devices = {}, .stripe_depth_bytes = 4096, .policy = {}};
    for (uint32_t d = 0; d < device_count; ++d) {
      options.devices.push_back(base_ + "/d" + std::to_string(d));
      std::filesystem::create_directory(options.devices.back());
    }
    auto made = Volume::create(options);
    if (!made) throw std::runtime_error(made.error().text);
    volume_ = std::move(*made);
  }
  ~TemporaryVolume() {
    std::error_code ignored;
    std::filesystem::remove_all(base_, ignored);
  }

  const Volume& operator*() const { return *volume_; }
  std::shared_ptr<const Volume> shared() const { return volume_; }
  std::string path(const std::string& name) const { return volume_->root() + "/" + name; }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }

  // A stub with parts of the right size, all 'x'.
  Layout add_striped(const std::string& name, uint64_t size,
                     FileState state = FileState::kClosed) const {
    Layout layout{.volume = volume_->uuid(),
                  .file_id = Uuid::random(),
                  .geometry = {.stripe_depth_bytes = 4096,
                               .device_count = volume_->device_count(),
                               .first_device = 1},
                  .logical_size = size,
                  .state = state};
    write(name, "");
    const Fd stub(::open(path(name).c_str(), O_RDWR | O_CLOEXEC));
    layout.identity = identify_stub(stub.get())->identity;
    std::vector<Fd> parts;
    std::vector<int> part_fds;
    for (uint32_t d = 0; d < volume_->device_count(); ++d) {
      const std::filesystem::path part = volume_->part_path(d, layout.file_id);
      std::filesystem::create_directories(part.parent_path());
      std::ofstream(part) << std::string(layout.map().part_size(d, size), 'x');
      parts.emplace_back(::open(part.c_str(), O_RDWR | O_CLOEXEC));
      part_fds.push_back(parts.back().get());
    }
    EXPECT_TRUE(bind_parts(*volume_, part_fds, layout, stub.get(), 0, name));
    EXPECT_TRUE(write_stub(stub.get(), layout));
    return layout;
  }

  uint32_t count_parts(const Layout& layout) const {
    uint32_t count = 0;
    for (uint32_t d = 0; d < volume_->device_count(); ++d) {
      count += std::filesystem::exists(volume_->part_path(d, layout.file_id));
    }
    return count;
  }

 private:
  std::string base_;
  std::shared_ptr<const Volume> volume_;
};

inline Fd open_path(const std::string& path) {
  return Fd(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

inline struct stat attributes(const Fd& fd) {
  struct stat st = {};
  EXPECT_EQ(::fstat(fd.get(), &st), 0);
  return st;
}

}  // namespace graphlane::fuse
