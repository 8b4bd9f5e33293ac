// What an ELF file says of itself, without running anything of it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "iomgr/base/error.h"

namespace graphlane::cli {

struct ElfFile {
  std::string path;
  bool for_this_machine = false;   // 64 bit, and this kind of processor
  std::string interpreter;         // the loader; empty: none
  bool is_library = false;         // has no loader, but is not a program either
  bool is_go = false;
  std::vector<std::string> needed;       // libraries, by the names of the loader
  std::vector<std::string> search_path;  // of its own, $ORIGIN resolved
  std::set<std::string> imports;         // functions that others must define
};

// Whether the file begins as an ELF file does; an errno if it cannot be read.
Outcome<bool> is_elf(const std::string& path);

// EINVAL for a file that is damaged.
Outcome<ElfFile> read_elf(const std::string& path);

// Reads the content of an ELF file, not its tables alone. This takes longer than read_elf().
struct ElfContent {
  std::set<std::string> libraries;  // whole strings that name one: what it may give to dlopen(3)
  bool calls_io_uring = false;      // by system calls of its own, on x86-64: no preload library sees them
};
ElfContent look_into_elf(const std::string& path);

// Where the loader would find a library that `file` needs; empty: nowhere.
std::string find_library(const ElfFile& file, const std::string& name);

}  // namespace graphlane::cli
