#include "cli/graph/convert_python.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace graphlane::cli {
namespace {

constexpr char kDefaultPython[] = "python3";
// Only finds the packages, because importing them takes a second.
constexpr char kFindsPackages[] =
    "import importlib.util as u, sys; sys.exit(not all(u.find_spec(name) for name in "
    "sys.argv[1:]))";

std::vector<char*> argument_list(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

// Whether the Python runs and finds the packages. Discards its output, which would not help the
// user.
bool has_packages(const std::string& python, const std::vector<std::string>& packages) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<std::string> words = {python, "-c", kFindsPackages};
  words.insert(words.end(), packages.begin(), packages.end());
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, python.c_str(), &actions, nullptr, argument_list(words).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failed != 0) return false;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

Error run_python_package(const std::vector<std::string>& words, bool needs_arrow) {
  const char* const given = std::getenv("GRAPHLANE_PYTHON");
  const std::string python = given != nullptr && *given != '\0' ? given : kDefaultPython;
  std::vector<std::string> packages = {"graphlane"};
  if (needs_arrow) packages.emplace_back("pyarrow");
  if (!has_packages(python, packages)) {
    return make_error(ENOENT,
                      "{}: lacks {}: make wheel, then pip install build/wheel/*.whl{}; "
                      "GRAPHLANE_PYTHON names another Python",
                      python,
                      needs_arrow ? "the packages graphlane and pyarrow" : "the package graphlane",
                      needs_arrow ? " pyarrow pyyaml" : "");
  }
  std::vector<std::string> command = {python, "-m", "graphlane"};
  command.insert(command.end(), words.begin(), words.end());
  ::execvp(python.c_str(), argument_list(command).data());
  return os_error(errno, python, "cannot run");
}

}  // namespace graphlane::cli
