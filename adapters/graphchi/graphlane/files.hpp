// Whole reads and writes, and the meaning of GraphChi's file names.
#ifndef GRAPHLANE_GRAPHCHI_FILES_HPP
#define GRAPHLANE_GRAPHCHI_FILES_HPP

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "graphlane/fail.hpp"

namespace graphlane_graphchi {

// Reads all of [offset, offset + size_bytes), or ends the program.
inline void read_at(int fd, const std::string& path, void* data, size_t size_bytes, size_t offset) {
  char* at = static_cast<char*>(data);
  while (size_bytes > 0) {
    const ssize_t count = ::pread(fd, at, size_bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, "cannot read", errno);
    if (count == 0) fail_at(path, offset, "the file ends here, more was expected");
    at += count;
    offset += static_cast<size_t>(count);
    size_bytes -= static_cast<size_t>(count);
  }
}

inline void write_at(int fd, const std::string& path, const void* data, size_t size_bytes, size_t offset) {
  const char* at = static_cast<const char*>(data);
  while (size_bytes > 0) {
    const ssize_t count = ::pwrite(fd, at, size_bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, "cannot write", errno);
    at += count;
    offset += static_cast<size_t>(count);
    size_bytes -= static_cast<size_t>(count);
  }
}

inline struct stat stat_of(int fd, const std::string& path) {
  struct stat st;
  if (::fstat(fd, &st) != 0) fail(path, "cannot stat", errno);
  return st;
}
inline size_t size_of(int fd, const std::string& path) {
  return static_cast<size_t>(stat_of(fd, path).st_size);
}

// The file's bytes; empty if it does not exist.
inline std::vector<char> bytes_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return std::vector<char>();
  if (fd < 0) fail(path, "cannot open", errno);
  std::vector<char> bytes(size_of(fd, path));
  read_at(fd, path, bytes.data(), bytes.size(), 0);
  ::close(fd);
  return bytes;
}

// "PREFIX.P_S": a file of shard P of S.
struct ShardName {
  bool valid = false;
  std::string prefix;
  unsigned shard = 0;
  unsigned shard_count = 0;

  std::string of(unsigned p) const {
    return prefix + "." + std::to_string(p) + "_" + std::to_string(shard_count);
  }
};

inline ShardName shard_name(const std::string& path) {
  ShardName name;
  size_t place[2] = {path.size(), path.size()};  // where S and P begin
  for (size_t i = 0, end = path.size(); i < 2; ++i) {
    size_t begin = end;
    while (begin > 0 && isdigit(static_cast<unsigned char>(path[begin - 1]))) --begin;
    if (begin == end || end - begin > 9 || begin == 0 || path[begin - 1] != (i == 0 ? '_' : '.')) return name;
    place[i] = begin;
    end = begin - 1;
  }
  name.prefix = path.substr(0, place[1] - 1);
  name.shard = static_cast<unsigned>(atoi(path.c_str() + place[1]));
  name.shard_count = static_cast<unsigned>(atoi(path.c_str() + place[0]));
  name.valid = name.shard < name.shard_count;
  return name;
}

inline bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace graphlane_graphchi

#endif
