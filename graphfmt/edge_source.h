// What read_edges() is made of: one reader for text, one for binary. Both are an
// assembly line (line.h) whose item is a piece of the file.
#pragma once

#include "graphfmt/edge_list.h"

namespace graphlane {

Outcome<EdgeListSummary> read_snap(const EdgeListOptions& options, EdgeSink& sink);
Outcome<EdgeListSummary> read_binary(const EdgeListOptions& options, EdgeSink& sink);

}  // namespace graphlane
