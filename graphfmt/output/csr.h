// CSR: a graph as three arrays of numpy, as scipy, DGL and networkit take them.
//
//   OUT/indptr.npy    vertex_count + 1 numbers: where the targets of each source begin
//   OUT/indices.npy   edge_count targets, sorted within a source
//   OUT/data.npy      with weights: the weight of each
//
// Both of the first are int32 where all numbers fit, else int64: scipy's own rule. Written from an
// external sort within the memory budget.
#pragma once

#include <string>
#include <vector>

#include "graphfmt/edge_list.h"

namespace graphlane::graphfmt {

struct CsrOptions {
  EdgeListOptions list;    // what is read, and how; its memory budget is that of all
  std::string output;      // a directory
  bool overwrite = false;  // replace an existing CSR (never anything else)
};

Outcome<EdgeListSummary> build_csr(const CsrOptions& options);

// A directory may be overwritten by a CSR only if it is a CSR or empty; EEXIST: another.
Outcome<void> may_become_csr(const std::string& dir);

}  // namespace graphlane::graphfmt
