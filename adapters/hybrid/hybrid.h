// The engine `hybrid` of `graphlane algo`: push or pull, block by block, over graphs of the format
// `dual`.
#pragma once

#include "adapters/graph/algorithm.h"

namespace graphlane::hybrid {

extern const AlgorithmEngine kEngine;

}  // namespace graphlane::hybrid
