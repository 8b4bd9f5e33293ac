// The mount options that are flags of the kernel's, by mount(8)'s names.
#pragma once

#include <string_view>

namespace graphlane {

struct KernelFlag {
  std::string_view name;
  unsigned long set = 0;    // MS_…
  unsigned long clear = 0;  // … of those that were set before
  bool for_libfuse = true;  // libfuse takes it; if not, it is for remounts, as a new mount
                            // begins with it, or the times are the host's
};

// nullptr: there is no such flag.
const KernelFlag* find_kernel_flag(std::string_view name);

}  // namespace graphlane
