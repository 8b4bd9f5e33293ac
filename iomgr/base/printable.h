// Names for display: on one line, and without control characters for a terminal.
#pragma once

#include <algorithm>
#include <string>

namespace graphlane {

// Replaces each control character by '?', as ls(1) does on a terminal.
inline std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text;
}

}  // namespace graphlane
