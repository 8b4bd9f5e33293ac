#include "iomgr/base/process/terminal.h"

#include <sys/ioctl.h>

namespace graphlane {
namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

}  // namespace

size_t terminal_columns(int fd) {
  struct winsize size = {};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

size_t columns_in(std::string_view text) {
  size_t columns = 0;
  for (const char c : text) columns += begins_character(c) ? 1 : 0;
  return columns;
}

std::string_view first_columns(std::string_view text, size_t columns) {
  size_t end = 0;
  for (; end < text.size(); ++end) {
    if (begins_character(text[end]) && columns-- == 0) break;
  }
  return text.substr(0, end);
}

}  // namespace graphlane
