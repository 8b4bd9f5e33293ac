// ResultWriter: an algorithm's values as a file, whole or not at all.
//
//   NAME.npy   numpy: one column is an array, several are a structured array with the columns' names
//   NAME.csv   a line of names, then vertex and values
//   NAME.txt   "id value" of the first column, as LDBC Graphalytics has it
//
// It is built beside its name and renamed into place; a file of that name is replaced.
#pragma once

#include <string>

#include "adapters/graph/algorithm.h"

namespace graphlane {

// EINVAL: another ending. Ask before the work.
Outcome<void> check_result_name(const std::string& path);

Outcome<void> write_result(const AlgorithmResult& result, const std::string& path);

}  // namespace graphlane
