// DepthChooser: `--stripe-depth auto`. The stripe depth of each file of an import, by
// what engines will ask of it; of files that belong to no known format the default.
#pragma once

#include <map>
#include <string>

#include "graphfmt/graph_requests.h"

namespace graphlane::graphfmt {

class DepthChooser {
 public:
  explicit DepthChooser(uint32_t device_count, bool on_ssds = false,
                        uint32_t thread_count = engine_thread_count())
      : device_count_(device_count), on_ssds_(on_ssds), thread_count_(thread_count) {}

  // The depth for the file at `path`, by its format, which other files of its directory may show.
  Outcome<AutoDepth> choose(const std::string& path);

 private:
  const uint32_t device_count_;
  const bool on_ssds_;
  const uint32_t thread_count_;
  std::map<std::string, GraphRequests> known_;  // by directory
};

}  // namespace graphlane::graphfmt
