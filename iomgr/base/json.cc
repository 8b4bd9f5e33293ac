#include "iomgr/base/json.h"

#include <nlohmann/json.hpp>

namespace graphlane {
namespace {

using Nlohmann = nlohmann::ordered_json;

const Json kNull;

// Builds a Json from the parser's events. `open_` holds the arrays and objects around the next
// value.
class JsonBuilder : public nlohmann::json_sax<Nlohmann> {
 public:
  explicit JsonBuilder(Json* root) : root_(root) {}

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool key(string_t& value) override {
    key_ = std::move(value);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  Json* place(Json&& value) {
    if (open_.empty()) {
      *root_ = std::move(value);
      return root_;
    }
    Json& around = *open_.back();
    if (around.is_object()) {
      Json& member = around[key_];
      member = std::move(value);
      return &member;
    }
    around.push_back(std::move(value));
    // A pointer to the last element stays valid until that element is closed.
    return const_cast<Json*>(&around.elements().back());
  }
  bool add(Json&& value) {
    place(std::move(value));
    return true;
  }
  bool open(Json&& value) {
    if (open_.size() == Json::kDepthMax) return false;
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json* const root_;
  std::vector<Json*> open_;
  std::string key_;
};

Nlohmann convert(const Json& value) {
  if (value.is_object()) {
    Nlohmann object = Nlohmann::object();
    for (const auto& [key, member] : value.members()) object[key] = convert(member);
    return object;
  }
  if (value.is_array()) {
    Nlohmann array = Nlohmann::array();
    for (const Json& element : value.elements()) array.push_back(convert(element));
    return array;
  }
  if (const std::string* text = value.as_string()) return *text;
  if (const auto flag = value.as_bool()) return *flag;
  if (const auto number = value.as_unsigned()) return *number;
  if (const auto number = value.as_integer()) return *number;
  if (const auto number = value.as_double()) return *number;
  return nullptr;
}

}  // namespace

Json::Json(std::initializer_list<Member> members) : value_(Object(members)) {}

std::optional<bool> Json::as_bool() const {
  const bool* flag = std::get_if<bool>(&value_);
  return flag != nullptr ? std::optional(*flag) : std::nullopt;
}

std::optional<uint64_t> Json::as_unsigned() const {
  if (const uint64_t* number = std::get_if<uint64_t>(&value_)) return *number;
  const int64_t* number = std::get_if<int64_t>(&value_);
  return number != nullptr && *number >= 0 ? std::optional(static_cast<uint64_t>(*number))
                                           : std::nullopt;
}

std::optional<int64_t> Json::as_integer() const {
  if (const int64_t* number = std::get_if<int64_t>(&value_)) return *number;
  const uint64_t* number = std::get_if<uint64_t>(&value_);
  return number != nullptr && *number <= INT64_MAX ? std::optional(static_cast<int64_t>(*number))
                                                   : std::nullopt;
}

std::optional<double> Json::as_double() const {
  if (const double* number = std::get_if<double>(&value_)) return *number;
  if (const auto number = as_unsigned()) return static_cast<double>(*number);
  if (const auto number = as_integer()) return static_cast<double>(*number);
  return std::nullopt;
}

const Json::Array& Json::elements() const {
  static const Array kNone;
  const Array* elements = std::get_if<Array>(&value_);
  return elements != nullptr ? *elements : kNone;
}

const Json::Object& Json::members() const {
  static const Object kNone;
  const Object* members = std::get_if<Object>(&value_);
  return members != nullptr ? *members : kNone;
}

const Json* Json::find(std::string_view key) const {
  for (const Member& member : members()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

const Json& Json::at_or_null(std::string_view key) const {
  const Json* found = find(key);
  return found != nullptr ? *found : kNull;
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object{};
  Object& members = std::get<Object>(value_);
  for (Member& member : members) {
    if (member.key == key) return member.value;
  }
  return members.emplace_back(std::string(key), Json()).value;
}

void Json::push_back(Json element) {
  if (is_null()) value_ = Array{};
  std::get<Array>(value_).push_back(std::move(element));
}

bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }

std::optional<Json> Json::parse(std::string_view text) {
  Json value;
  JsonBuilder builder(&value);
  if (!Nlohmann::sax_parse(text.begin(), text.end(), &builder)) return std::nullopt;
  return value;
}

std::string Json::dump(int indent) const {
  return convert(*this).dump(indent, ' ', false, Nlohmann::error_handler_t::replace);
}

}  // namespace graphlane
