// Results that can be compared between runs: a checksum to print, and the whole vector as raw
// binary for --out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/engines/posix.h"

namespace engines {

// FNV-1a over the bytes of the values, in order.
template <class T>
uint64_t checksum(const std::vector<T>& values) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (size_t i = 0; i < values.size() * sizeof(T); ++i) {
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  }
  return hash;
}

template <class T>
void write_result(const std::string& path, const std::vector<T>& values) {
  if (path.empty()) return;
  const File out(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  out.write_all(values.data(), values.size() * sizeof(T));
}

}  // namespace engines
