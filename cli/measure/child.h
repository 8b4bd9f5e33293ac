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
  // The first line of its stderr, else a description of its exit.
  std::string complaint() const;
};

// `words`: the program, searched for in $PATH, and its arguments. Its stdin is empty. ENOENT: no
// such program.
Outcome<Finished> run_child(std::vector<std::string> words);

}  // namespace graphlane::cli
