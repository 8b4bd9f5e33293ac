// A directory with the kernel's files about memory, as in /proc and /sys.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace graphlane {

class MemoryFiles {
 public:
  MemoryFiles() { set_available(UINT64_MAX >> 20); }
  ~MemoryFiles() { std::filesystem::remove_all(root_); }
  MemoryFiles(const MemoryFiles&) = delete;
  MemoryFiles& operator=(const MemoryFiles&) = delete;

  const char* root() const { return root_.c_str(); }
  std::string path(const std::string& name) const { return root_ + name; }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
  }
  // All files of a machine without cgroups.
  void set_available(uint64_t bytes) const {
    write("/proc/meminfo", "MemAvailable: " + std::to_string(bytes / 1024) + " kB\n");
  }

 private:
  static std::string make_root() {
    std::string pattern = ::testing::TempDir() + "graphlane_memory_XXXXXX";
    return ::mkdtemp(pattern.data());
  }
  const std::string root_ = make_root();
};

}  // namespace graphlane
