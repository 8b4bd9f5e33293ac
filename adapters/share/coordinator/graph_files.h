// GraphFiles: the files that a coordinator reads a graph's units from.
//
// What the page cache has already, for others, comes from there. All else comes by O_DIRECT,
// past it: a second copy would serve nobody, and drive the jobs' own data out of memory.
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
  std::vector<Fd> direct;  // the same by O_DIRECT; none: not possible with that one
  std::vector<FileIdentity> identities;
  Layout layout;
  Units units;

  // The units in runs, each adjacent in a file: what load() reads at once.
  std::vector<std::vector<uint32_t>> runs(std::span<const uint32_t> batch) const;

  // Each of the units in new sealed memory. What is adjacent in a file is read at once.
  // ESTALE: a file is not what it was.
  std::vector<Outcome<Fd>> load(std::span<const uint32_t> batch) const;

  // Whether jobs that come may find it: no file was written or removed since.
  bool can_be_found() const;

 private:
  std::vector<FileRange> pieces(uint32_t unit) const;
  Outcome<Fd> load(uint32_t unit, DirectReader& reader) const;
};

}  // namespace graphlane::share
