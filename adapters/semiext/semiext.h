// The engine `semiext` of `graphlane algo`: vertex programs over graphs of the format `lists`.
#pragma once

#include "adapters/graph/algorithm.h"

namespace graphlane::semiext {

extern const AlgorithmEngine kEngine;

}  // namespace graphlane::semiext
