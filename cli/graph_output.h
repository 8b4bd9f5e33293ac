// GraphOutput: where convert and gen write a graph, which may be in a volume.
//
//   OUT outside a volume    written there by graphfmt, which renames it into place
//   OUT in a volume         written below VOL/.graphlane/tmp, imported from there,
//                           and renamed into place
#pragma once

#include <functional>

#include "cli/command.h"

namespace graphlane::cli {

// `build` makes the file or directory at the path that it is given, which is
// free, or with `overwrite` may hold what it replaces.
Outcome<void> write_graph(const std::string& out, bool overwrite,
                          const std::function<Outcome<void>(const std::string& path)>& build);

}  // namespace graphlane::cli
