// GraphFiles: the files that a coordinator reads a graph's units from.
//
// Cached ranges are copied from the page cache. All others are read by O_DIRECT, because a copy in
// the page cache would have no reader and would evict the jobs' own data.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "adapters/share/schedule/units.h"
#include "adapters/share/wire/layout.h"
#include "iomgr/base/fd.h"

namespace graphlane::share {

class DirectReader;

struct GraphFiles {
  std::string name;  // for messages
  std::vector<Fd> files;
  std::vector<Fd> direct;  // the same files by O_DIRECT; none: not supported
  std::vector<FileIdentity> identities;
  Layout layout;
  Units units;

  // Splits the units into runs that are adjacent in a file. load() reads a run at once.
  std::vector<std::vector<uint32_t>> runs(std::span<const uint32_t> batch) const;

  // Loads each unit into new sealed memory; adjacent ones are read together. ESTALE: a file has
  // changed.
  std::vector<Outcome<Fd>> load(std::span<const uint32_t> batch) const;

  // Whether new jobs can attach to this graph: no file was written or removed since.
  bool can_be_found() const;

 private:
  std::vector<FileRange> pieces(uint32_t unit) const;
  Outcome<Fd> load(uint32_t unit, DirectReader& reader) const;
};

}  // namespace graphlane::share
