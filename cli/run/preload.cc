#include "cli/run/preload.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace graphlane::cli {
namespace fs = std::filesystem;
namespace {

constexpr char kVariable[] = "LD_PRELOAD";
constexpr std::string_view kLibrary = "libgraphlane.so";
constexpr char kSeparators[] = " :";  // ld.so(8) takes both

// The list without this library; `found`: whether it was in it.
std::string without_library(std::string_view list, bool* found) {
  std::string rest;
  *found = false;
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(kSeparators), list.size());
    const std::string_view entry = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (fs::path(entry).filename() == kLibrary) {
      *found = true;
    } else if (!entry.empty()) {
      rest += (rest.empty() ? "" : ":") + std::string(entry);
    }
  }
  return rest;
}

}  // namespace

void shed_preload(char** argv) {
  const char* list = std::getenv(kVariable);
  if (list == nullptr) return;
  bool found = false;
  const std::string rest = without_library(list, &found);
  if (!found) return;
  if (rest.empty()) {
    ::unsetenv(kVariable);
  } else {
    ::setenv(kVariable, rest.c_str(), 1);
  }
  ::execv("/proc/self/exe", argv);  // on failure this process goes on
}

Outcome<std::string> find_preload_library() {
  std::error_code error;
  const fs::path bin = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path lib = bin.parent_path() / "lib";
  for (const fs::path& place : {lib / "graphlane" / kLibrary, lib / kLibrary}) {
    if (fs::exists(place, error)) return place.string();
  }
  return make_error(ENOENT, "{}: missing: the preload library is not installed with this program",
                    (lib / "graphlane" / kLibrary).string());
}

Outcome<void> prepend_preload(const std::string& library) {
  if (library.find_first_of(kSeparators) != std::string::npos) {
    return make_error(EINVAL, "{}: LD_PRELOAD takes no name with a space or a colon", library);
  }
  const char* list = std::getenv(kVariable);
  bool found = false;
  const std::string rest = without_library(list != nullptr ? list : "", &found);
  ::setenv(kVariable, (rest.empty() ? library : library + ":" + rest).c_str(), 1);
  return {};
}

}  // namespace graphlane::cli
