#include "iomgr/base/error.h"

#include <cstring>

namespace graphlane {

Error os_error(int code, std::string_view path, std::string_view action) {
  return make_error(code, "{}: {}: {}", path, action, std::strerror(code));
}

}  // namespace graphlane
