// GraphOutput: the place to which convert and gen write a graph, which may be in a volume.
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
  AtPath may_replace;  // returns an error if the present target must stay
  AtPath build;        // makes the graph; calls may_replace itself
};
Outcome<void> write_graph(const GraphOutput& output);

}  // namespace graphlane::cli
