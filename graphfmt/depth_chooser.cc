#include "graphfmt/depth_chooser.h"

#include <algorithm>
#include <filesystem>

namespace graphlane::graphfmt {
namespace fs = std::filesystem;

Outcome<AutoDepth> DepthChooser::choose(const std::string& path) {
  const fs::path file(path);
  fs::path top = file.parent_path();
  std::string sweep = file.filename().string();
  // A block of a shard is told by the directory that it is in.
  const std::string in_directory = sweep_of((top.filename() / sweep).string());
  if (in_directory.ends_with("/*")) {
    sweep = in_directory;
    top = top.parent_path();
  }
  if (!known_.contains(top.string())) {
    const Outcome<GraphDirectory> directory = GraphDirectory::open(top.string());
    if (!directory) return directory.error();
    Outcome<GraphRequests> requests = find_requests(*directory);
    if (!requests) return requests.error();
    known_.emplace(top.string(), std::move(*requests));
  }
  for (const Sweep& known : known_.at(top.string()).sweeps) {
    if (known.name != sweep) continue;
    return auto_depth(known.requests, known.bytes, device_count_, on_ssds_, thread_count_);
  }
  std::error_code error;
  const uint64_t size = fs::file_size(file, error);
  if (error) return os_error(error.value(), path, "cannot open");
  return auto_depth({}, size, device_count_, on_ssds_, thread_count_);
}

}  // namespace graphlane::graphfmt
