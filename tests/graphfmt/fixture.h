// Fixture for tests of graphfmt: a temporary directory, whole files as strings, edges as lists.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "graphfmt/edge.h"
#include "iomgr/base/process/progress.h"

namespace graphlane::graphfmt {

inline bool operator==(const Edge& a, const Edge& b) {
  return a.source == b.source && a.target == b.target;
}
inline std::ostream& operator<<(std::ostream& out, const Edge& edge) {
  return out << edge.source << "->" << edge.target;
}

class TempDirTest : public testing::Test {
 protected:
  TempDirTest() {
    Progress::silence();
    std::string name = (std::filesystem::temp_directory_path() / "graphfmt-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    dir_ = name;
  }
  ~TempDirTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }

  std::string path(const std::string& name) const { return dir_ + "/" + name; }

  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

  static std::string read(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream content;
    content << in.rdbuf();
    return content.str();
  }

  // Writes in place, which is much faster than rewriting the file.
  void flip_bit(const std::string& name, size_t bit) const {
    std::fstream file(path(name), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(bit / 8));
    const char byte = static_cast<char>(file.get() ^ 1 << bit % 8);
    file.seekp(static_cast<std::streamoff>(bit / 8));
    file.put(byte);
  }

  std::vector<std::string> names_in_dir() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string dir_;
};

inline std::string gzipped(const std::string& text) {
  z_stream z{};
  deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

// The bytes of some numbers as in a binary file.
template <class T>
std::string bytes_of(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

// Every file of a directory, by name.
inline std::map<std::string, std::string> files_of(const std::string& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    std::ifstream in(entry.path(), std::ios::binary);
    std::ostringstream content;
    content << in.rdbuf();
    files[entry.path().filename().string()] = content.str();
  }
  return files;
}

// A sink that keeps the records.
class Collect : public EdgeSink {
 public:
  Outcome<void> take(EdgeBatch& batch) override {
    records.append(batch.records.data(), batch.records_bytes());
    return {};
  }
  std::vector<Edge> edges() const {
    std::vector<Edge> list(records.size() / sizeof(Edge));
    std::memcpy(list.data(), records.data(), list.size() * sizeof(Edge));
    return list;
  }
  std::string records;
};

}  // namespace graphlane::graphfmt
