// JSON in: each kind of value, and what is refused with its line.
#include "base/json_reader.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace crema {
namespace {

std::string mistake(const std::string& text) {
  try {
    parse_json(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(JsonReader, ReadsEachKindOfValue) {
  const JsonValue file = parse_json(
      R"( { "a": [1, -2.5e1, []], "b": { }, "c": "x\"\\\/\n\u00e9\u20AC", "d": [true, false, null] } )");
  ASSERT_EQ(file.kind, JsonValue::object);
  ASSERT_EQ(file.members.size(), 4U);
  const std::vector<JsonValue>& a = file.at("a").as_list("a");
  ASSERT_EQ(a.size(), 3U);
  EXPECT_EQ(a[0].as_number("a"), 1);
  EXPECT_EQ(a[1].as_number("a"), -25);
  EXPECT_TRUE(a[2].as_list("a").empty());
  EXPECT_EQ(file.at("b").kind, JsonValue::object);
  EXPECT_EQ(file.at("c").words, "x\"\\/\n\u00e9\u20AC");
  const std::vector<JsonValue>& d = file.at("d").items;
  ASSERT_EQ(d.size(), 3U);
  EXPECT_EQ(d[0].kind, JsonValue::boolean);
  EXPECT_EQ(d[0].value, 1);
  EXPECT_EQ(d[1].value, 0);
  EXPECT_EQ(d[2].kind, JsonValue::null);
  EXPECT_EQ(file.find("e"), nullptr);
}

TEST(JsonReader, NamesTheLine) {
  EXPECT_EQ(mistake(""), "line 1: a value is expected");
  EXPECT_EQ(mistake("[1,\n2"), "line 2: a ] is missing after a list's values");
  EXPECT_EQ(mistake("[1 2]"), "line 1: a ] is missing after a list's values");
  EXPECT_EQ(mistake("{\"a\" 1}"), "line 1: a : is missing after a name");
  EXPECT_EQ(mistake("{\n\n1: 2}"), "line 3: a name in quotation marks is expected");
  EXPECT_EQ(mistake("{\"a\": 1\n"), "line 2: a } is missing after an object's values");
  EXPECT_EQ(mistake("[\"x\ny\"]"), "line 1: a text is not closed");
  EXPECT_EQ(mistake("\"x"), "line 1: a text is not closed");
  EXPECT_EQ(mistake("\"\\q\""), "line 1: \\q is no escape");
  EXPECT_EQ(mistake("\"\\u12g4\""), "line 1: \\u needs four digits");
  EXPECT_EQ(mistake("-inf"), "line 1: a number is expected");
  EXPECT_EQ(mistake("tru"), "line 1: a value is expected");
  EXPECT_EQ(mistake("1 2"), "line 1: something follows the value");
  EXPECT_EQ(mistake(std::string(200, '[')), "line 1: more than 100 brackets lie inside each other");
}

TEST(JsonReader, NamesWhatIsMissing) {
  const JsonValue file = parse_json("{ \"a\": \"x\" }");
  EXPECT_THROW(file.at("b"), Error);
  EXPECT_THROW(file.at("a").as_number("a"), Error);
  EXPECT_THROW(file.at("a").as_list("a"), Error);
}

}  // namespace
}  // namespace crema
