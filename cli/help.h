// Help: the help of a command, folded to a width.
//
//   --memory SIZE             use no more than this (1G for
//                             what is sorted)
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace graphlane::cli {

struct HelpEntry {
  std::string name;  // "-d,--device DIR"
  std::string text;
};

struct HelpSection {
  std::string title;
  std::vector<HelpEntry> entries;  // none: the section is left out
};

struct Help {
  std::string about;
  std::string usage;
  std::vector<HelpSection> sections;
  // Lines that begin without a blank are prose, and are joined up to an empty line or a line that
  // ends with ':'. "  NAME  text" is an entry. Every other line with two blanks in front is a
  // command: it is continued behind " \", so that it can be pasted.
  std::string more;
};

// No line is longer than `width` columns, unless a single word is.
std::string fold(const Help& help, size_t width);

// The columns for fold(): $COLUMNS, else those of the terminal on stdout, from 40 to 100. Neither: 100.
size_t help_width();

}  // namespace graphlane::cli
