// `convert` to the format `pages`, and `info` on it (graphfmt/pages/pages.h).
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/graph/convert_lists.h"
#include "graphfmt/pages/pages_build.h"

namespace graphlane::cli {

// As convert_to_lists(). Without `page_size_bytes` pages have the default size.
Outcome<std::vector<std::string>> convert_to_pages(const ToStored& options,
                                                   std::optional<uint64_t> page_size_bytes);

Outcome<int> show_pages(const std::string& path, bool as_json);

}  // namespace graphlane::cli
