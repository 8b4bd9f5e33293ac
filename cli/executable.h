// Executable: the ELF file that a command ends up running, through any scripts, and whether the
// preload library gets into it.
#pragma once

#include <string>
#include <vector>

#include "cli/elf_file.h"
#include "iomgr/base/error.h"

namespace graphlane::cli {

struct Script {
  std::string path;
  std::string line;  // what follows "#!"; empty: it has none
};

struct Executable {
  std::vector<Script> scripts;  // each is run by the next, the last by `file`
  ElfFile file;
  std::string blind_because;    // the library is not in it; empty: it is
};

// `program`: a path, or a name to be found as execvp(3) does.
Outcome<Executable> find_executable(const std::string& program);

}  // namespace graphlane::cli
