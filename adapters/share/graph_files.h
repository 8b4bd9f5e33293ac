// GraphFiles: the files that a coordinator reads a graph's partitions from.
#pragma once

#include <string>
#include <vector>

#include "adapters/share/layout.h"
#include "iomgr/base/fd.h"

namespace graphlane::share {

struct GraphFiles {
  std::string name;  // for messages
  std::vector<Fd> files;
  std::vector<FileIdentity> identities;
  std::vector<FileRange> ranges;
  std::vector<uint64_t> partition_bytes;

  // The partition in new sealed memory. ESTALE: a file is not what it was.
  Outcome<Fd> load(uint32_t partition) const;
};

}  // namespace graphlane::share
