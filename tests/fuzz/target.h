// FuzzTarget: a reader of untrusted bytes. It may refuse them, but it may not crash, hang, or take
// memory without bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace graphlane::fuzz {

using Bytes = std::span<const uint8_t>;

struct FuzzTarget {
  std::string_view name;
  void (*run)(Bytes input);
};

// All of them, in the order of their names' files.
std::span<const FuzzTarget> volume_targets();
std::span<const FuzzTarget> server_targets();
std::span<const FuzzTarget> share_targets();
std::span<const FuzzTarget> kit_targets();
std::span<const FuzzTarget> graph_targets();
std::span<const FuzzTarget> pages_targets();
std::span<const FuzzTarget> shim_targets();
std::vector<std::span<const FuzzTarget>> all_targets();

// Null: there is none of that name.
const FuzzTarget* find_target(std::string_view name);

// Ends the program unless it holds, in every build: assert() is not there in some.
inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

// An empty directory in memory that ends with the process, for readers that open files by name.
class WorkDirectory {
 public:
  WorkDirectory();
  ~WorkDirectory();
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;
  // Replaces the file NAME (which may lie in a directory that make() made), or the directory.
  void write(const std::string& name, Bytes content) const;
  void make(const std::string& name) const;
  std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }

 private:
  std::string path_;
};

// The input, as a file that can be opened by a path of /proc while this lives.
class InputFile {
 public:
  explicit InputFile(Bytes input);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  const char* path() const { return path_; }

 private:
  int fd_;
  char path_[32];
};

}  // namespace graphlane::fuzz
