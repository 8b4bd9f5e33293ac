// Reads facts from an ELF file, without running any of it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "iomgr/base/error.h"

namespace graphlane::cli {

struct ElfFile {
  std::string path;
  bool for_this_machine = false;  // 64 bit, and this kind of processor
  std::string interpreter;        // the loader; empty: none
  bool is_library = false;        // it has no loader and is not a program
  bool is_go = false;
  std::vector<std::string> needed;       // libraries, by the loader's names
  std::vector<std::string> search_path;  // its own, with $ORIGIN resolved
  std::set<std::string> imports;         // functions that other files must define
};

// Whether the file has an ELF magic; an errno if it cannot be read.
Outcome<bool> is_elf(const std::string& path);

// EINVAL: the file is damaged.
Outcome<ElfFile> read_elf(const std::string& path);

// Reads the whole content of an ELF file, which takes longer than read_elf().
struct ElfContent {
  std::set<std::string> libraries;  // strings that name a library, which it may pass to dlopen(3)
  // by system calls of its own (x86-64), which no preload library sees
  bool calls_io_uring = false;
};
ElfContent look_into_elf(const std::string& path);

// The path at which the loader would find a library for `file`; empty: it would not.
std::string find_library(const ElfFile& file, const std::string& name);

}  // namespace graphlane::cli
