// Mount options that are flags of the kernel, by mount(8)'s names.
#pragma once

#include <string_view>

namespace graphlane::fuse {

struct KernelFlag {
  std::string_view name;
  unsigned long set = 0;    // MS_…
  unsigned long clear = 0;  // MS_… that it resets
  // Passed to libfuse for a new mount. False: used by remounts only, because it is a new mount's
  // default or concerns times, which are the host's.
  bool for_libfuse = true;
};

// nullptr: no such flag.
const KernelFlag* find_kernel_flag(std::string_view name);

}  // namespace graphlane::fuse
