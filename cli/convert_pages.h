// The work of convert and info on a graph of the format `pages` (graphfmt/pages/pages.h).
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "graphfmt/pages/pages_build.h"

namespace graphlane::cli {

struct ToPages {
  EdgeListOptions input;
  std::string codec;
  std::optional<uint64_t> page_bytes;
  bool overwrite = false;
  std::string path;
  std::string shown;  // what the user called it
};
// Prints the result; notes for the user, a line each.
Outcome<std::vector<std::string>> convert_to_pages(const ToPages& options);

Outcome<int> show_pages(const std::string& path, bool as_json);

}  // namespace graphlane::cli
