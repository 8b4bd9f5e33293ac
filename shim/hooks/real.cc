#include "shim/hooks/real.h"

#include <dlfcn.h>

namespace graphlane::shim::real {

void* resolve(const char* name) {
  const int saved_errno = errno;
  void* address = dlsym(RTLD_NEXT, name);
  errno = saved_errno;
  return address;
}

}  // namespace graphlane::shim::real
