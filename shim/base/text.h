// Text without allocation: paths and messages in fixed buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace graphlane::shim {

// Appends while there is room; ok() tells whether everything fitted.
template <size_t kSize>
class Text {
 public:
  Text& operator<<(std::string_view piece) {
    const size_t room = kSize - 1 - length_;
    if (piece.size() > room) complete_ = false;
    const size_t n = piece.size() < room ? piece.size() : room;
    std::memcpy(text_ + length_, piece.data(), n);
    length_ += n;
    text_[length_] = '\0';
    return *this;
  }
  Text& operator<<(uint64_t number) {
    char digits[20];
    size_t n = 0;
    do {
      digits[sizeof digits - ++n] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    return *this << std::string_view(digits + sizeof digits - n, n);
  }

  void cut(size_t length) { text_[length_ = length] = '\0'; }
  // Writes by `fill(room, size)`, which returns the length or less than 0.
  template <class Fill>
  void assign(Fill fill) {
    const long n = fill(text_, kSize - 1);
    complete_ = n >= 0;
    cut(n > 0 ? static_cast<size_t>(n) : 0);
  }
  bool ok() const { return complete_; }
  const char* c_str() const { return text_; }
  std::string_view view() const { return {text_, length_}; }

 private:
  char text_[kSize]{};
  size_t length_ = 0;
  bool complete_ = true;
};

using PathText = Text<4096>;

// The path of an open descriptor; "" if /proc does not tell. A PathText takes a quarter of the
// smallest thread stack, so callers keep theirs in static memory.
void find_path(int fd, PathText* path);

// "graphlane: SUBJECT: REASON" on stderr, in one write.
void complain(std::string_view subject, std::string_view reason);

}  // namespace graphlane::shim
