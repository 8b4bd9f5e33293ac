// The engine `kv` of `graphlane algo`: delta-accumulative algorithms over graphs of the format
// `pages`.
#pragma once

#include "adapters/graph/algorithm.h"

namespace graphlane::maiter {

extern const AlgorithmEngine kEngine;

}  // namespace graphlane::maiter
