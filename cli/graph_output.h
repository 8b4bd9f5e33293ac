// GraphOutput: where convert and gen write a graph, which may be in a volume.
//
//   OUT outside a volume    written there by graphfmt, which renames it into place
//   OUT in a volume         written below VOL/.graphlane/tmp, imported from there,
//                           and renamed into place
#pragma once

#include <functional>

#include "cli/command.h"

namespace graphlane::cli {

using AtPath = std::function<Outcome<void>(const std::string& path)>;

struct GraphOutput {
  std::string path;  // OUT
  bool overwrite = false;
  AtPath may_replace;  // what is there: an error if not
  AtPath build;        // what is to be there; it asks may_replace by itself
};
Outcome<void> write_graph(const GraphOutput& output);

}  // namespace graphlane::cli
