// Commands of the Python package: GraphAr, Parquet and comparing results. `graphlane convert`
// becomes `python3 -m graphlane to-graphar …`; the variable GRAPHLANE_PYTHON names another Python.
#pragma once

#include <string>
#include <vector>

#include "iomgr/base/error.h"

namespace graphlane::cli {

inline constexpr char kGraphArFormat[] = "graphar";
inline constexpr char kParquetFormat[] = "parquet";

// Replaces this process by the package's command. Returns only with an error. ENOENT: there is no
// such Python, or it lacks the package; the text says how to install it.
Error run_python_package(const std::vector<std::string>& words, bool needs_arrow);

}  // namespace graphlane::cli
