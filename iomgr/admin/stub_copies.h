// StubCopies: stubs that name the same parts, as cp(1) makes them where no mount is in its way.
//
//   column      ──►  parts/34/34b9…  ◄──  column.bak
//
// Neither is the original. Who takes or changes the parts of one harms the other, so commands that
// do that look at all stubs of the volume before; a mount and the preload library, for which that
// would take too long, do not. A stub that we may not read is not seen, and one whose owner does not
// own the parts (parts.h) does not count.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "iomgr/volume/volume.h"

namespace graphlane {

class StubCounts {
 public:
  static Outcome<StubCounts> take(const Volume& volume);
  // How many stubs name the file; an inode of several names is one.
  uint32_t of(const Uuid& file_id) const;

 private:
  std::map<std::array<uint8_t, 16>, uint32_t> counts_;
};

}  // namespace graphlane
