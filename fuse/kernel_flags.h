// The mount options that are flags of the kernel's, by mount(8)'s names.
#pragma once

#include <string_view>

namespace graphlane {

struct KernelFlag {
  std::string_view name;
  unsigned long set = 0;    // MS_…
  unsigned long clear = 0;  // … of those that were set before
  bool for_libfuse = true;  // libfuse takes it when mounting; if not, it is what a mount begins with
};

// nullptr: there is no such flag.
const KernelFlag* find_kernel_flag(std::string_view name);

}  // namespace graphlane
