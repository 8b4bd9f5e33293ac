// Binds stubs to their parts anew, where ownership.h cannot tell which stub the parts belong to.
//
//   upgrade_volume   a volume of format 1, with stubs that name no inode
//
//   adopt_volume     a restored, copied or moved volume, with stubs in other inodes
//
// A stub is bound if it is the only one that names its parts, and its owner owns them. An
// ambiguous stub is listed and left unchanged: it stays refused, and nothing is lost. With the
// path of one file, that file is bound.
//
// The parts are bound first, then the stub, each durably. After a kill the same call goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iomgr/volume/volume.h"

namespace graphlane {

struct BindReport {
  uint64_t bound_count = 0;
  uint64_t kept_count = 0;        // were bound correctly
  std::vector<std::string> left;  // one line each: a stub that was not bound, and why
  std::optional<Error> stopped;   // ended the work early, e.g. an interrupt
};

// Requires that no process changes names or has the volume mounted: otherwise EBUSY. Stubs of
// format 2 stay as they are.
Outcome<BindReport> upgrade_volume(const Volume& volume);

// Makes the directory the volume's home, then binds its stubs. `volume` comes from
// Volume::open_any(). With a path below the root it binds that one file, which the caller has
// chosen.
Outcome<BindReport> adopt_volume(const Volume& volume, const std::string& path);

}  // namespace graphlane
