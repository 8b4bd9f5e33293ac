// JsonView: a JSON value within text that the caller keeps. It is parsed in place.
//
//   const std::optional<JsonView> object = JsonView::parse(text);   none: not valid JSON
//   object->at("home").at("inode").as_unsigned()                    none: not there, or no number
//   for (const JsonView device : object->at("devices").elements()) device.append_to(path);
//
// Json (json.h) owns its parts, and prints. This one is for files that the preload library reads, too.
//
// No allocation, no exceptions, no recursion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace graphlane {

class JsonView {
 public:
  static constexpr uint32_t kDepthMax = 64;  // one bit each

  // The value that takes the whole text, which is checked to its end: RFC 8259 in valid UTF-8, nested
  // at most kDepthMax deep.
  static std::optional<JsonView> parse(std::string_view text);

  JsonView() = default;  // null

  bool is_null() const { return text_.front() == 'n'; }
  bool is_object() const { return text_.front() == '{'; }
  bool is_array() const { return text_.front() == '['; }
  bool is_string() const { return text_.front() == '"'; }
  std::optional<bool> as_bool() const;
  std::optional<uint64_t> as_unsigned() const;  // an integer from 0 to 2^64 - 1
  std::optional<int64_t> as_integer() const;    // an integer that fits

  // The member of that name; null: not an object, or no such member. Of several the last counts.
  // Names are compared as they are written, so a name with an escape is not found.
  JsonView at(std::string_view name) const { return find(name).value_or(JsonView()); }
  std::optional<JsonView> find(std::string_view name) const;

  class Elements;
  // The elements of an array. Another value has none.
  Elements elements() const;

  // A string without escapes that equals `text`.
  bool is(std::string_view text) const;
  // Appends a string's bytes by `out << std::string_view`. False: not a string.
  template <class Out>
  bool append_to(Out& out) const {
    if (!is_string()) return false;
    std::string_view rest = inside();
    Piece piece;
    while (next_piece(&rest, &piece)) out << piece.view();
    return true;
  }

 private:
  // Bytes of a string up to the next escape, or one character that an escape stands for.
  struct Piece {
    std::string_view plain;
    char escaped[4];
    size_t escaped_length = 0;
    std::string_view view() const {
      return escaped_length > 0 ? std::string_view(escaped, escaped_length) : plain;
    }
  };

  explicit JsonView(std::string_view text) : text_(text) {}

  std::string_view inside() const { return text_.substr(1, text_.size() - 2); }
  static bool next_piece(std::string_view* rest, Piece* piece);
  // Takes a value, or a member's name, and what separates it from the next one.
  static JsonView take(std::string_view* rest);

  std::string_view text_ = "null";  // valid, without space around it
};

class JsonView::Elements {
 public:
  class Iterator {
   public:
    Iterator() = default;
    explicit Iterator(std::string_view rest) : rest_(rest), is_end_(rest.empty()) { ++*this; }
    JsonView operator*() const { return now_; }
    Iterator& operator++();
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.is_end_ == b.is_end_; }

   private:
    std::string_view rest_;
    JsonView now_;
    bool is_end_ = true;
  };

  explicit Elements(std::string_view inside) : inside_(inside) {}
  Iterator begin() const { return Iterator(inside_); }
  Iterator end() const { return {}; }
  size_t count() const;

 private:
  std::string_view inside_;  // without space at either end
};

}  // namespace graphlane
