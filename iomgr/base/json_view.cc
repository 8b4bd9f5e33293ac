#include "iomgr/base/json_view.h"

#include <algorithm>
#include <charconv>

#include "iomgr/base/utf8.h"

namespace graphlane {
namespace {

constexpr std::string_view kSpace = " \t\n\r";

void skip_space(std::string_view* rest) {
  rest->remove_prefix(std::min(rest->find_first_not_of(kSpace), rest->size()));
}

bool take_word(std::string_view* rest, std::string_view word) {
  if (!rest->starts_with(word)) return false;
  rest->remove_prefix(word.size());
  return true;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// At least one digit.
bool take_digits(std::string_view* rest) {
  size_t count = 0;
  while (count < rest->size() && is_digit((*rest)[count])) ++count;
  rest->remove_prefix(count);
  return count > 0;
}

bool take_number(std::string_view* rest) {
  (void)take_word(rest, "-");
  if (!take_word(rest, "0") && !take_digits(rest)) return false;
  if (take_word(rest, ".") && !take_digits(rest)) return false;
  if (!take_word(rest, "e") && !take_word(rest, "E")) return true;
  if (!take_word(rest, "+")) (void)take_word(rest, "-");
  return take_digits(rest);
}

// The value of four hexadecimal digits; -1: they are none.
int code_unit(std::string_view text) {
  unsigned code = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + std::min<size_t>(text.size(), 4), code, 16);
  const bool is_whole = error == std::errc() && end == text.data() + 4;
  return is_whole && text[0] != '+' && text[0] != '-' ? static_cast<int>(code) : -1;
}

bool is_low_surrogate(int unit) { return unit >= 0xdc00 && unit < 0xe000; }
bool is_high_surrogate(int unit) { return unit >= 0xd800 && unit < 0xdc00; }

// After a backslash. A surrogate needs its other half.
bool take_escape(std::string_view* rest) {
  constexpr std::string_view kNames = "\"\\/bfnrt";
  if (rest->empty()) return false;
  const char name = rest->front();
  rest->remove_prefix(1);
  if (name != 'u') return kNames.find(name) != kNames.npos;
  const int unit = code_unit(*rest);
  if (unit < 0 || is_low_surrogate(unit)) return false;
  rest->remove_prefix(4);
  if (!is_high_surrogate(unit)) return true;
  if (!take_word(rest, "\\u") || !is_low_surrogate(code_unit(*rest))) return false;
  rest->remove_prefix(4);
  return true;
}

// With its quotes.
bool take_string(std::string_view* rest) {
  if (!take_word(rest, "\"")) return false;
  while (!rest->empty()) {
    const auto c = static_cast<unsigned char>(rest->front());
    if (c >= 0x80) {
      if (!take_utf8(rest)) return false;
      continue;
    }
    rest->remove_prefix(1);
    if (c == '"') return true;
    if (c < 0x20 || (c == '\\' && !take_escape(rest))) return false;
  }
  return false;
}

// A value that contains no other.
bool take_scalar(std::string_view* rest) {
  if (rest->empty()) return false;
  switch (rest->front()) {
    case '"': return take_string(rest);
    case 't': return take_word(rest, "true");
    case 'f': return take_word(rest, "false");
    case 'n': return take_word(rest, "null");
    default: return take_number(rest);
  }
}

// Checks one value. Instead of recursion, a bit for each open array or object.
class Checker {
 public:
  explicit Checker(std::string_view text) : rest_(text) {}

  bool check() {
    skip_space(&rest_);
    do {
      if (!take_begin()) return false;
    } while (depth_ > 0);
    skip_space(&rest_);
    return rest_.empty();
  }

 private:
  bool is_object() const { return (objects_ >> (depth_ - 1) & 1) != 0; }

  // Takes the begin of a value, or a whole one, and then all that ends after it.
  bool take_begin() {
    if (take_word(&rest_, "{")) return open(true);
    if (take_word(&rest_, "[")) return open(false);
    return take_scalar(&rest_) && take_ends();
  }

  bool open(bool object) {
    if (depth_ == JsonView::kDepthMax) return false;
    objects_ = (objects_ & ~(uint64_t{1} << depth_)) | (uint64_t{object} << depth_);
    ++depth_;
    skip_space(&rest_);
    if (take_word(&rest_, object ? "}" : "]")) return close();
    return !object || take_name();
  }

  bool close() {
    --depth_;
    return take_ends();
  }

  bool take_name() {
    if (!take_string(&rest_)) return false;
    skip_space(&rest_);
    if (!take_word(&rest_, ":")) return false;
    skip_space(&rest_);
    return true;
  }

  // After a value: the ends of what contains it, and the comma before the next value.
  bool take_ends() {
    while (depth_ > 0) {
      skip_space(&rest_);
      if (take_word(&rest_, ",")) {
        skip_space(&rest_);
        return !is_object() || take_name();
      }
      if (!take_word(&rest_, is_object() ? "}" : "]")) return false;
      --depth_;
    }
    return true;
  }

  std::string_view rest_;
  uint32_t depth_ = 0;
  uint64_t objects_ = 0;  // bit i: the one at depth i is an object
};

// The length of the string at the beginning of valid text.
size_t string_length(std::string_view text) {
  size_t i = 1;
  while (text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return i + 1;
}

// The length of the value at the beginning of valid text.
size_t value_length(std::string_view text) {
  uint32_t depth = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"') {
      i += string_length(text.substr(i));
    } else {
      if (depth == 0 && (kSpace.find(c) != kSpace.npos || c == ',' || c == ':')) return i;
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++i;
      if (c != '}' && c != ']') continue;
    }
    if (depth == 0) return i;
  }
  return text.size();
}

size_t append_utf8(uint32_t code, char* out) {
  size_t length = 0;
  const auto put = [&](uint32_t byte) { out[length++] = static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
  }
  if (code >= 0x80) put(0x80 | (code & 0x3f));
  return length;
}

}  // namespace

std::optional<JsonView> JsonView::parse(std::string_view text) {
  if (!Checker(text).check()) return std::nullopt;
  skip_space(&text);
  return JsonView(text.substr(0, value_length(text)));
}

JsonView JsonView::take(std::string_view* rest) {
  const size_t length = value_length(*rest);
  const JsonView value(rest->substr(0, length));
  rest->remove_prefix(length);
  skip_space(rest);
  if (take_word(rest, ",") || take_word(rest, ":")) skip_space(rest);
  return value;
}

std::optional<bool> JsonView::as_bool() const {
  if (text_ == "true") return true;
  if (text_ == "false") return false;
  return std::nullopt;
}

std::optional<uint64_t> JsonView::as_unsigned() const {
  if (text_ == "-0") return 0;
  uint64_t value = 0;
  const char* const end = text_.data() + text_.size();
  const auto [last, error] = std::from_chars(text_.data(), end, value);
  return error == std::errc() && last == end ? std::optional(value) : std::nullopt;
}

std::optional<int64_t> JsonView::as_integer() const {
  int64_t value = 0;
  const char* const end = text_.data() + text_.size();
  const auto [last, error] = std::from_chars(text_.data(), end, value);
  return error == std::errc() && last == end ? std::optional(value) : std::nullopt;
}

std::optional<JsonView> JsonView::find(std::string_view name) const {
  if (!is_object()) return std::nullopt;
  std::string_view rest = inside();
  skip_space(&rest);
  std::optional<JsonView> found;
  while (!rest.empty()) {
    const JsonView member = take(&rest);
    const JsonView value = take(&rest);
    if (member.is(name)) found = value;
  }
  return found;
}

JsonView::Elements JsonView::elements() const {
  if (!is_array()) return Elements({});
  std::string_view rest = inside();
  skip_space(&rest);
  return Elements(rest);
}

bool JsonView::is(std::string_view text) const {
  return is_string() && inside() == text && text.find('\\') == text.npos;
}

JsonView::Elements::Iterator& JsonView::Elements::Iterator::operator++() {
  is_end_ = rest_.empty();
  if (!is_end_) now_ = take(&rest_);
  return *this;
}

size_t JsonView::Elements::count() const {
  size_t count = 0;
  for (auto element = begin(); element != end(); ++element) ++count;
  return count;
}

bool JsonView::next_piece(std::string_view* rest, Piece* piece) {
  if (rest->empty()) return false;
  const size_t plain = std::min(rest->find('\\'), rest->size());
  piece->escaped_length = 0;
  piece->plain = rest->substr(0, plain);
  rest->remove_prefix(plain);
  if (plain > 0) return true;
  constexpr std::string_view kNames = "bfnrt";
  constexpr std::string_view kCharacters = "\b\f\n\r\t";
  const char name = (*rest)[1];
  rest->remove_prefix(2);
  if (name != 'u') {
    const size_t named = kNames.find(name);
    piece->escaped[0] = named == kNames.npos ? name : kCharacters[named];
    piece->escaped_length = 1;
    return true;
  }
  auto code = static_cast<uint32_t>(code_unit(*rest));
  rest->remove_prefix(4);
  if (is_high_surrogate(static_cast<int>(code))) {
    const auto low = static_cast<uint32_t>(code_unit(rest->substr(2)));
    rest->remove_prefix(6);
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  piece->escaped_length = append_utf8(code, piece->escaped);
  return true;
}

}  // namespace graphlane
