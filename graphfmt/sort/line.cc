#include "graphfmt/sort/line.h"

#include <sched.h>

#include <algorithm>

namespace graphlane::graphfmt {

unsigned usable_threads(unsigned requested) {
  if (requested != 0) return requested;
  cpu_set_t cores;
  // Fails only on machines with more cores than a cpu_set_t has bits.
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) {
    return std::max(1u, std::thread::hardware_concurrency());
  }
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&cores)));
}

}  // namespace graphlane::graphfmt
