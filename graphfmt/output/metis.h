// METIS: a line of neighbours for each vertex (input/read_metis.cc has the format).
//
// It holds undirected graphs without self-loops and parallel edges; weights of edges are whole numbers
// from 1. Another graph is refused, with the first edge that does not fit. The edges are sorted twice
// within the memory budget, by source and by target: in an undirected graph both orders are the same
// list, read from either end.
#pragma once

#include "graphfmt/edge_list.h"

namespace graphlane::graphfmt {

// `list.weight_type` is kFloat64 if there are weights. With `list.round_weights` they become the nearest
// whole numbers.
Outcome<EdgeListSummary> write_metis(const EdgeListOptions& list, const EdgeListOutput& output);

}  // namespace graphlane::graphfmt
