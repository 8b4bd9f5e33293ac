// Executable: the ELF file that a command finally runs, through any scripts, and whether the
// preload library gets into it.
#pragma once

#include <string>
#include <vector>

#include "cli/run/elf_file.h"
#include "iomgr/base/error.h"

namespace graphlane::cli {

struct Script {
  std::string path;
  std::string line;  // after "#!"; empty: there is none
};

struct Executable {
  std::vector<Script> scripts;  // each is run by the next one, the last by `file`
  ElfFile file;
  std::string blind_because;  // why the library is not in it; empty: it is
};

// `program`: a path, or a name that is searched as execvp(3) does.
Outcome<Executable> find_executable(const std::string& program);

}  // namespace graphlane::cli
