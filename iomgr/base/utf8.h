// Checks UTF-8 (RFC 3629).
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <cstddef>
#include <string_view>

namespace graphlane {

// Takes one character beyond ASCII off the front, or nothing: no overlong form, no surrogate, none beyond U+10FFFF.
inline bool take_utf8(std::string_view* rest) {
  const auto byte = [&](size_t i) {
    return i < rest->size() ? static_cast<unsigned char>((*rest)[i]) : 0u;
  };
  const unsigned first = byte(0);
  size_t length = 0;
  unsigned least = 0x80, most = 0xbf;  // of the second byte
  if (first >= 0xc2 && first < 0xe0) length = 2;
  if (first >= 0xe0 && first < 0xf0) length = 3;
  if (first >= 0xf0 && first < 0xf5) length = 4;
  if (first == 0xe0) least = 0xa0;
  if (first == 0xed) most = 0x9f;
  if (first == 0xf0) least = 0x90;
  if (first == 0xf4) most = 0x8f;
  if (length == 0 || byte(1) < least || byte(1) > most) return false;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return false;
  }
  rest->remove_prefix(length);
  return true;
}

inline bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    if (static_cast<unsigned char>(text.front()) < 0x80) {
      text.remove_prefix(1);
    } else if (!take_utf8(&text)) {
      return false;
    }
  }
  return true;
}

}  // namespace graphlane
