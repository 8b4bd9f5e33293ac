// Json: a JSON value that owns its parts. nlohmann-json parses and prints it, in json.cc alone,
// because each file that includes nlohmann's header costs ten seconds of compilation.
//
//   Json about = {{"path", path}, {"size", 4096}};   braces always make an object
//   about["parts"] = Json::array();                  the members keep the order of their making
//
//   const Json* size = about.find("size");           null: not an object, or no such member
//   if (size && size->as_unsigned()) …               nothing: not a number from 0 to 2^64 - 1
//
// No accessor throws: on another kind of value it returns nothing, or an empty value.
//
// Threads: as std::string.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace graphlane {

class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  Json();  // null
  Json(std::nullptr_t);
  Json(bool value);
  template <std::unsigned_integral Number>
  Json(Number value);
  template <std::signed_integral Number>
  Json(Number value);
  Json(double value);
  Json(std::string value);
  Json(std::string_view value);
  Json(const char* value);
  template <class Element>
  Json(const std::vector<Element>& elements);
  template <class Element>
  Json(const std::set<Element>& elements);
  Json(std::initializer_list<Member> members);

  static Json array();
  static Json object();

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  std::optional<bool> as_bool() const;
  std::optional<uint64_t> as_unsigned() const;  // an integer that is not negative
  std::optional<int64_t> as_integer() const;    // an integer up to 2^63 - 1
  std::optional<double> as_double() const;      // any number
  const std::string* as_string() const { return std::get_if<std::string>(&value_); }

  const Array& elements() const;  // empty: not an array
  const Object& members() const;  // empty: not an object
  const Json* find(std::string_view key) const;
  // The member of that name, or null (a static one).
  const Json& at_or_null(std::string_view key) const;

  // Adds the member if there is none; a null value becomes an object.
  Json& operator[](std::string_view key);
  // A null value becomes an array.
  void push_back(Json element);

  friend bool operator==(const Json&, const Json&);

  // Empty: not valid JSON, or nested deeper than kDepthMax. Among members with one name the last
  // counts.
  static constexpr int kDepthMax = 64;
  static std::optional<Json> parse(std::string_view text);
  // With an indent, or on one line with -1. Bytes that are not UTF-8 become U+FFFD.
  std::string dump(int indent = -1) const;

 private:
  explicit Json(Array elements);

  std::variant<std::monostate, bool, uint64_t, int64_t, double, std::string, Array, Object> value_;
};

struct Json::Member {
  std::string key;
  Json value;
  friend bool operator==(const Member&, const Member&) = default;
};

// Here, because a Json can be made and destroyed only where its Members are known.
inline Json::Json() = default;
inline Json::Json(std::nullptr_t) {}
inline Json::Json(bool value) : value_(value) {}
template <std::unsigned_integral Number>
Json::Json(Number value) : value_(uint64_t{value}) {}
template <std::signed_integral Number>
Json::Json(Number value) : value_(int64_t{value}) {}
template <class Element>
Json::Json(const std::vector<Element>& elements)
    : value_(Array(elements.begin(), elements.end())) {}
template <class Element>
Json::Json(const std::set<Element>& elements) : value_(Array(elements.begin(), elements.end())) {}
inline Json::Json(double value) : value_(value) {}
inline Json::Json(std::string value) : value_(std::move(value)) {}
inline Json::Json(std::string_view value) : value_(std::string(value)) {}
inline Json::Json(const char* value) : value_(std::string(value)) {}
inline Json::Json(Array elements) : value_(std::move(elements)) {}
inline Json Json::array() { return Json(Array{}); }
inline Json Json::object() { return Json(std::initializer_list<Member>{}); }

}  // namespace graphlane
