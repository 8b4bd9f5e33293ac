// fail(): ends the program with one line that names the file and the reason. GraphChi's programs handle
// no errors, and GraphChi itself asserts.
#ifndef GRAPHLANE_GRAPHCHI_FAIL_HPP
#define GRAPHLANE_GRAPHCHI_FAIL_HPP

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <string>

namespace graphlane_graphchi {

// Called first; set it to remove what the program would leave behind.
inline void (*&before_failing())() {
  static void (*call)() = nullptr;
  return call;
}

// _exit(), because other threads may be using objects that static destructors destroy.
[[noreturn]] inline void fail(const std::string& what) {
  if (before_failing() != nullptr) before_failing()();
  fflush(stdout);
  fprintf(stderr, "%s\n", what.c_str());
  _exit(1);
}
[[noreturn]] inline void fail(const std::string& path, const char* what, int error) {
  fail(path + ": " + what + ": " + strerror(error));
}
[[noreturn]] inline void fail_at(const std::string& path, size_t offset, const char* what) {
  fail(path + ": byte " + std::to_string(offset) + ": " + what);
}

}  // namespace graphlane_graphchi

#endif
