#include "iomgr/base/json.h"

#include <gtest/gtest.h>

#include "iomgr/base/utf8.h"

namespace graphlane {
namespace {

TEST(JsonTest, KeepsTheOrderOfMembers) {
  Json about = {{"uuid", "a"}, {"format", 1}};
  about["devices"] = std::vector<std::string>{"/mnt/d1", "/mnt/d0"};
  about["policy"] = {{"stripe", Json::array()}, {"size_min", uint64_t{1} << 63}};
  EXPECT_EQ(
      about.dump(),
      R"({"uuid":"a","format":1,"devices":["/mnt/d1","/mnt/d0"],"policy":{"stripe":[],"size_min":9223372036854775808}})");
}

TEST(JsonTest, ReadsBackWhatItPrints) {
  const Json value = {{"null", nullptr},        {"yes", true}, {"most", UINT64_MAX},
                      {"least", INT64_MIN},     {"half", 0.5}, {"text", "a\n\"b"},
                      {"empty", Json::object()}};
  const std::optional<Json> parsed = Json::parse(value.dump(2));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->dump(), value.dump());
  EXPECT_EQ(parsed->at_or_null("most").as_unsigned(), UINT64_MAX);
  EXPECT_EQ(parsed->at_or_null("least").as_integer(), INT64_MIN);
  EXPECT_EQ(parsed->at_or_null("half").as_double(), 0.5);
}

TEST(JsonTest, AValueOfAnotherKindReadsAsNothing) {
  const Json value = {{"text", "1"}, {"negative", -1}, {"fraction", 1.5}, {"array", Json::array()}};
  EXPECT_FALSE(value.at_or_null("text").as_unsigned());
  EXPECT_FALSE(value.at_or_null("negative").as_unsigned());
  EXPECT_FALSE(value.at_or_null("fraction").as_unsigned());
  EXPECT_FALSE(value.at_or_null("fraction").as_integer());
  EXPECT_FALSE(value.at_or_null("array").as_bool());
  EXPECT_TRUE(value.at_or_null("missing").is_null());
  EXPECT_EQ(value.at_or_null("text").find("below"), nullptr);
  EXPECT_TRUE(value.at_or_null("text").elements().empty());
  EXPECT_TRUE(value.at_or_null("array").members().empty());
}

TEST(JsonTest, TakesTheLastOfMembersOfOneName) {
  EXPECT_EQ(Json::parse(R"({"a": 1, "a": 2})")->dump(), R"({"a":2})");
}

TEST(JsonTest, RejectsInvalidJson) {
  for (const char* text : {"", "{", "[1,]", "{\"a\"}", "nul", "1 2", "\"\xff\"", "{'a': 1}"}) {
    EXPECT_FALSE(Json::parse(text)) << text;
  }
}

// A file of 512 KiB could nest half a million arrays, and freeing each level takes stack.
TEST(JsonTest, RefusesDeepNesting) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(Json::parse(nested(Json::kDepthMax)));
  EXPECT_FALSE(Json::parse(nested(Json::kDepthMax + 1)));
  EXPECT_FALSE(Json::parse(std::string(500000, '[')));
}

TEST(JsonTest, PrintsBytesThatAreNotUtf8AsReplacementCharacters) {
  EXPECT_EQ(Json("a\xff").dump(), "\"a\xef\xbf\xbd\"");
  EXPECT_FALSE(is_utf8("a\xff"));
  EXPECT_TRUE(is_utf8("grün"));
}

}  // namespace
}  // namespace graphlane
