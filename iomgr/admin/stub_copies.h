// StubCopies: stubs that name the same parts, as cp(1) makes them without a mount.
//
//   column      ──►  parts/34/34b9…  ◄──  column.bak
//
// Neither is the original, and a change of the parts through one harms the other. So commands that
// change or take parts check all stubs of the volume first. A mount and the preload library do
// not, because it would take too long. An unreadable stub is not seen. A stub does not count if
// its owner does not own the parts (parts.h).
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
  // How many stubs name the file; an inode with several names is one.
  uint32_t of(const Uuid& file_id) const;

 private:
  std::map<std::array<uint8_t, 16>, uint32_t> counts_;
};

}  // namespace graphlane
