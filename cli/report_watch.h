// ReportWatch: whether any program of a command has told how it read (`run --report`); else this tells why none did.
//
// The preload library sends a byte to an abstract socket for each report. Its name stands in the environment.
// A program that ends by _exit(2), or in which the library is not, sends none.
#pragma once

#include <string>

#include "iomgr/base/fd.h"

namespace graphlane::cli {

class ReportWatch {
 public:
  // Call it before the command starts: changes the environment. `target`: "1" (stderr), or a file.
  explicit ReportWatch(std::string target);

  // Call it when the command has ended. `blind`: the reason why the library was not in it, or "".
  void tell_if_nobody_did(const std::string& command, const std::string& blind) const;

 private:
  const std::string target_;
  Fd socket_;
};

}  // namespace graphlane::cli
