// ReportWatch: notices whether any program of a command has reported its reads (`run --report`);
// else says why none has.
//
// The preload library sends a byte to an abstract socket for each report. The socket's name is in
// the environment. A program that ends by _exit(2), or that does not have the library, sends none.
#pragma once

#include <string>

#include "iomgr/base/fd.h"

namespace graphlane::cli {

class ReportWatch {
 public:
  // Call it before the command starts, because it changes the environment. `target`: "1" (stderr),
  // or a file.
  explicit ReportWatch(std::string target);

  // Call it after the command. `blind`: the reason why the library was not in it, or "".
  void tell_if_none_reported(const std::string& command, const std::string& blind) const;

 private:
  const std::string target_;
  Fd socket_;
};

}  // namespace graphlane::cli
