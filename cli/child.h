// A program that is run to its end: what it printed, and how it ended.
//
// Threads: any. An interrupt (base/interrupt.h) kills the program, and is the error.
#pragma once

#include <string>
#include <vector>

#include "iomgr/base/error.h"

namespace graphlane::cli {

struct Finished {
  int status = 0;  // as of waitpid
  std::string out = {}, err = {};

  bool succeeded() const { return status == 0; }
  // The first line that it printed on stderr, else how it ended.
  std::string complaint() const;
};

// `words`: the program, which is looked for in $PATH, and its arguments. Its stdin is empty. ENOENT: there is no such
// program.
Outcome<Finished> run_child(std::vector<std::string> words);

}  // namespace graphlane::cli
