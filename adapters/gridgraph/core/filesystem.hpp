#ifndef GRAPHLANE_GRIDGRAPH_FILESYSTEM_HPP
#define GRAPHLANE_GRIDGRAPH_FILESYSTEM_HPP

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

#include <string>

inline bool file_exists(std::string path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0;
}

// The size in bytes; -1: no such file.
inline long file_size(std::string path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 ? static_cast<long>(st.st_size) : -1;
}

inline bool create_directory(std::string path) {
  return ::mkdir(path.c_str(), 0764) == 0 || file_exists(path);
}

// Removes the directory with its contents. Links are removed, their targets stay.
inline bool remove_directory(std::string path) {
  const auto remove_one = [](const char* name, const struct stat*, int, struct FTW*) {
    return ::remove(name);
  };
  return !file_exists(path) || ::nftw(path.c_str(), remove_one, 64, FTW_DEPTH | FTW_PHYS) == 0;
}

#endif
