// Names as they may be shown: on one line, and without what a terminal obeys.
#pragma once

#include <algorithm>
#include <string>

namespace graphlane {

// '?' for each control character, as ls(1) has it on a terminal.
inline std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text;
}

}  // namespace graphlane
