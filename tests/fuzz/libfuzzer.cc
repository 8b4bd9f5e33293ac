// For clang's libFuzzer: the target that the environment's FUZZ_TARGET names.
#include <cstdlib>

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const graphlane::fuzz::FuzzTarget* const target = [] {
    const char* name = std::getenv("FUZZ_TARGET");
    const auto* found = graphlane::fuzz::find_target(name != nullptr ? name : "");
    graphlane::fuzz::require(found != nullptr);
    return found;
  }();
  target->run({data, size});
  return 0;
}
