// Binding stubs to their parts anew, where the rule (volume/ownership.h) cannot tell the parts'
// stub.
//
//   upgrade_volume   a volume of format 1, whose stubs name no inode
//   adopt_volume     a volume whose directory was restored, copied or moved: its stubs lie in other inodes
//
// A stub is bound if it alone names its parts, and its owner owns them. An ambiguous stub is listed
// and left as it is: refused, with nothing lost. A call with the path of one file binds that one.
//
// Parts are bound first, then the stub, each durably: killed in between, the same call goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iomgr/volume/volume.h"

namespace graphlane {

struct BindReport {
  uint64_t bound_count = 0;
  uint64_t kept_count = 0;         // were bound as they should be
  std::vector<std::string> left;   // one line each: what was not bound, and why
  std::optional<Error> stopped;    // what ended it before the last, as an interrupt does
};

// No process may make, move or remove names meanwhile, nor have the volume mounted: EBUSY. A stub
// of format 2 stays.
Outcome<BindReport> upgrade_volume(const Volume& volume);

// Makes the directory the volume's home, then binds its stubs. `volume` comes from Volume::open_any(). With a path
// below the root: binds that one file, of which the caller knows that it is the right one.
Outcome<BindReport> adopt_volume(const Volume& volume, const std::string& path);

}  // namespace graphlane
