// GraphDirectory: the files of a graph as whole files, wherever they are: plain, or
// striped, in the directory of a volume that is not mounted there.
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graphfmt/graph_header.h"
#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"
#include "iomgr/volume/parts/striped_file.h"
#include "iomgr/volume/volume.h"

namespace graphlane::graphfmt {

struct GraphFile {
  uint64_t size_bytes = 0;
  uint64_t stripe_depth_bytes = 0;  // 0: a plain file
};

// A file of a graph that is open for reading.
//
// Threads: any, at once.
class OpenGraphFile {
 public:
  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return size_bytes_; }
  // nullptr: a plain file, with the descriptor fd().
  const std::shared_ptr<StripedFile>& striped() const { return striped_; }
  int fd() const { return fd_.get(); }
  // Reads all of the range, at once, in this thread. EIO: the file ends before.
  Outcome<void> read(ByteRange range, void* buffer) const;

 private:
  friend class GraphDirectory;
  std::string path_;
  uint64_t size_bytes_ = 0;
  Fd fd_;
  std::shared_ptr<const Volume> volume_;
  std::shared_ptr<StripedFile> striped_;
};

class GraphDirectory {
 public:
  // ENOTDIR: not a directory.
  static Outcome<GraphDirectory> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  // The names in it, sorted. What a directory of it holds: "directory/file".
  Outcome<std::vector<std::string>> files(const std::string& directory = "") const;
  Outcome<std::vector<std::string>> directories() const;
  bool has(const std::string& name) const;
  Outcome<GraphFile> look(const std::string& name) const;
  Outcome<OpenGraphFile> open_file(const std::string& name) const;
  // All of a file of at most `size_max` bytes; EFBIG: it has more.
  Outcome<std::string> read(const std::string& name, uint64_t size_max) const;

 private:
  explicit GraphDirectory(std::string path) : path_(std::move(path)) {}
  // The layout of an open file, if it is a stub.
  Outcome<std::optional<Layout>> layout_of(int fd, const std::string& path) const;
  Outcome<std::shared_ptr<const Volume>> volume() const;

  std::string path_;
  mutable std::shared_ptr<const Volume> volume_;  // from the first stub on
};

// The header of the stored graph in the directory. ENOENT: it has none.
Outcome<GraphHeader> read_graph_header(const std::string& path);

}  // namespace graphlane::graphfmt
