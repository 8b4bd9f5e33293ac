// GraphFiles: the files that a coordinator reads a graph's partitions from.
//
// What the page cache has already, for others, comes from there. All else comes by O_DIRECT,
// past it: a second copy would serve nobody, and drive the jobs' own data out of memory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "adapters/share/layout.h"
#include "iomgr/base/fd.h"

namespace graphlane::share {

class DirectReader;

struct GraphFiles {
  std::string name;  // for messages
  std::vector<Fd> files;
  std::vector<Fd> direct;  // the same by O_DIRECT; none: not possible with that one
  std::vector<FileIdentity> identities;
  std::vector<FileRange> ranges;
  std::vector<uint64_t> partition_bytes;

  // Each of the partitions in new sealed memory. What is adjacent in a file is read at once.
  // ESTALE: a file is not what it was.
  std::vector<Outcome<Fd>> load(std::span<const uint32_t> batch) const;

 private:
  Outcome<Fd> load(uint32_t partition, DirectReader& reader) const;
};

}  // namespace graphlane::share
