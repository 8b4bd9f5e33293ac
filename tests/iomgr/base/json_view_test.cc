// JsonView, compared with Json: both accept the same texts, and find the same values in them.
#include "iomgr/base/json_view.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>

#include "iomgr/base/json.h"

namespace graphlane {
namespace {

std::string string_in(const JsonView& view) {
  std::ostringstream out;
  return view.append_to(out) ? out.str() : "(no string)";
}

// Whether both are the same value.
void expect_same(const Json& expected, const JsonView& view, const std::string& text) {
  ASSERT_EQ(view.is_object(), expected.is_object()) << text;
  ASSERT_EQ(view.is_array(), expected.is_array()) << text;
  ASSERT_EQ(view.is_null(), expected.is_null()) << text;
  EXPECT_EQ(view.as_bool(), expected.as_bool()) << text;
  EXPECT_EQ(view.as_integer(), expected.as_integer()) << text;
  EXPECT_EQ(view.as_unsigned(), expected.as_unsigned()) << text;
  EXPECT_EQ(string_in(view),
            expected.as_string() != nullptr ? *expected.as_string() : "(no string)")
      << text;
  for (const auto& [name, value] : expected.members()) {
    if (name.find_first_of("\\\"") != name.npos || Json(name).dump() != '"' + name + '"') continue;
    const std::optional<JsonView> member = view.find(name);
    // A name that was written with an escape is not found.
    if (member) expect_same(value, *member, text);
  }
  ASSERT_EQ(view.elements().count(), expected.elements().size()) << text;
  size_t i = 0;
  for (const JsonView element : view.elements())
    expect_same(expected.elements()[i++], element, text);
}

void compare(const std::string& text) {
  const std::optional<Json> expected = Json::parse(text);
  const std::optional<JsonView> view = JsonView::parse(text);
  ASSERT_EQ(view.has_value(), expected.has_value()) << text;
  if (view) expect_same(*expected, *view, text);
}

TEST(JsonViewTest, AcceptsWhatJsonAccepts) {
  for (const char* text : {"",
                           " ",
                           "null",
                           "nul",
                           "nullx",
                           "true",
                           " false ",
                           "0",
                           "01",
                           "-",
                           "1.",
                           "1.5",
                           "1e",
                           "1e5",
                           "1E+5",
                           "-1e-5",
                           "18446744073709551615",
                           "18446744073709551616",
                           "-9223372036854775808",
                           "\"\"",
                           "\"a",
                           "\"\\",
                           "\"\\u12\"",
                           "\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"",
                           "\"\\ud83d\"",
                           "\"\\ude00\"",
                           "\"\\u+041\"",
                           "\"\\x\"",
                           "\"\\b\\f\\n\\r\\t\\/\\\\\\\"\"",
                           "\"\t\"",
                           "\"\x7f\"",
                           "\"\xc3\xa9\"",
                           "\"\xc3\"",
                           "\"\xc0\xaf\"",
                           "\"\xe0\x80\xaf\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xf0\x9f\x98\x80\"",
                           "\"\xf4\x90\x80\x80\"",
                           "\"\xf8\x88\x80\x80\x80\"",
                           "[]",
                           "[ ]",
                           "[1]",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "[1,2",
                           "[1}",
                           "{}",
                           "{ }",
                           "{\"a\":1}",
                           "{\"a\" : 1 , \"b\":[{}]}",
                           "{\"a\":1,}",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{a:1}",
                           "{\"a\":1 \"b\":2}",
                           "{\"a\":1,\"a\":2}",
                           "{\"a\":{\"b\":[1,\"]\",{\"c\":\"}\"}]},\"d\":true}",
                           "{} {}",
                           "1 1",
                           "[1]x",
                           "// 1\n1"}) {
    compare(text);
  }
  // Json ends at a zero byte.
  EXPECT_FALSE(JsonView::parse({"1\0", 2}));
  EXPECT_FALSE(JsonView::parse({"\"\0\"", 3}));
}

TEST(JsonViewTest, NestsAsDeepAsJson) {
  for (const int depth : {63, 64, 65, 1000}) {
    compare(std::string(depth, '[') + std::string(depth, ']'));
    std::string objects;
    for (int i = 0; i < depth; ++i) objects += "{\"a\":";
    compare(objects + "1" + std::string(depth, '}'));
  }
}

TEST(JsonViewTest, AMissingMemberIsNull) {
  const JsonView object = *JsonView::parse(R"({"a":{"b":7}})");
  EXPECT_EQ(object.at("a").at("b").as_unsigned(), 7u);
  EXPECT_TRUE(object.at("b").at("c").is_null());
  EXPECT_FALSE(object.find("b"));
  EXPECT_EQ(object.at("a").elements().count(), 0u);
  EXPECT_FALSE(object.at("b").is("b"));
}

// Texts that are nearly volume.json. There is no exponent, because Json refuses those that are out of
// a double's range.
TEST(JsonViewTest, AgreesWithJsonOnDamagedTexts) {
  const std::string whole = R"({"format":2,"uuid":"6b","devices":["/d0","/d\u00e9\"\\"],
      "stripe_depth":262144,"policy":{"stripe":["*.bin",""],"size_min":-1},"home":{"born":1.5},"x":[true,null]})";
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::string bytes = R"({}[]",:\u01-.ntf )"
                            "\n\xc3\xa9";
  for (int i = 0; i < 20'000; ++i) {
    std::string text = whole;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = bytes[random() % bytes.size()]; break;
        case 1: text.erase(at, 1 + random() % 4); break;
        default: text.insert(at, 1, bytes[random() % bytes.size()]);
      }
    }
    if (random() % 16 == 0) text.resize(random() % text.size());
    compare(text);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

}  // namespace
}  // namespace graphlane
