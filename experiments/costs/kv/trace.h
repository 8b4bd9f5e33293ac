// A trace of gets: which lists a delta-PageRank asks for, in order, and how hot each is then.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "iomgr/base/error.h"

namespace graphlane::replay {

struct Get {
  uint32_t vertex;
  float priority;     // |Δ|, as Maiter has it
  float accumulated;  // all that the vertex has got so far, Δ included
};

// How often each get's list was asked for until then, itself included.
inline std::vector<float> gets_so_far(const std::vector<Get>& trace) {
  std::vector<float> counts, so_far;
  for (const Get& get : trace) {
    if (get.vertex >= counts.size()) counts.resize(get.vertex + 1);
    so_far.push_back(++counts[get.vertex]);
  }
  return so_far;
}

struct CloseStream {
  void operator()(FILE* file) const { std::fclose(file); }
};

inline Outcome<std::vector<Get>> read_trace(const std::string& path) {
  const std::unique_ptr<FILE, CloseStream> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return os_error(errno, path, "cannot open");
  std::fseek(file.get(), 0, SEEK_END);
  std::vector<Get> trace(static_cast<size_t>(std::ftell(file.get())) / sizeof(Get));
  std::rewind(file.get());
  if (std::fread(trace.data(), sizeof(Get), trace.size(), file.get()) != trace.size()) {
    return os_error(errno, path, "cannot read");
  }
  return trace;
}

inline Outcome<void> write_trace(const std::vector<Get>& trace, const std::string& path) {
  const std::unique_ptr<FILE, CloseStream> file(std::fopen(path.c_str(), "wb"));
  if (file == nullptr) return os_error(errno, path, "cannot create");
  if (std::fwrite(trace.data(), sizeof(Get), trace.size(), file.get()) != trace.size()) {
    return os_error(errno, path, "cannot write");
  }
  return {};
}

}  // namespace graphlane::replay
