#include "iomgr/base/error.h"

#include "iomgr/base/files/regular_file.h"

namespace graphlane {

Error os_error(int code, std::string_view path, std::string_view action) {
  return make_error(code, "{}: {}: {}", path, action, error_text(code));
}

}  // namespace graphlane
