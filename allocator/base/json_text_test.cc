#include "allocator/base/json_text.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

std::string Quoted(std::string_view text) {
  char buffer[256];
  JsonText json(buffer, sizeof(buffer));
  json.String(text);
  EXPECT_FALSE(json.overflowed());
  return std::string(json.text());
}

TEST(JsonText, WritesNumbers) {
  char buffer[256];
  JsonText json(buffer, sizeof(buffer));
  json.Number(0).Raw(" ").Number(std::numeric_limits<std::uint64_t>::max());
  json.Raw(" ").SignedNumber(-7).Raw(" ");
  json.SignedNumber(std::numeric_limits<std::int64_t>::min());
  json.Raw(" ").Hex(0).Raw(" ").Hex(0x7f00'0000'12f0);
  EXPECT_EQ(json.text(),
            "0 18446744073709551615 -7 -9223372036854775808 \"0x0\" "
            "\"0x7f00000012f0\"");
}

TEST(JsonText, LeavesPlainTextAndUtf8AsItIs) {
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted("redis-server 7/x"), "\"redis-server 7/x\"");
  EXPECT_EQ(Quoted("\u00e9\u20ac\U0001f600"), "\"\u00e9\u20ac\U0001f600\"");
  EXPECT_EQ(Quoted("\uffff\U0010ffff"), "\"\uffff\U0010ffff\"");
}

TEST(JsonText, EscapesWhatMayNotStandInAString) {
  EXPECT_EQ(Quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(Quoted("\n\x01\x1f\x7f"), R"("\u000a\u0001\u001f\u007f")");
  EXPECT_EQ(Quoted(std::string_view("\0x", 2)), R"("\u0000x")");
}

TEST(JsonText, LabelsHaveNoCodes) {
  char buffer[64];
  JsonText json(buffer, sizeof(buffer));
  json.Label("a\"\\\n\xff\u00e9");
  EXPECT_EQ(json.text(), "\"a\\\"\\\\\\\\x0a\\\\xff\u00e9\"");
}

TEST(JsonText, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(Quoted("\xff"), R"("\\xff")");
  EXPECT_EQ(Quoted("a\x80z"), R"("a\\x80z")");
  EXPECT_EQ(Quoted("\xc3"), R"("\\xc3")");           // cut off
  EXPECT_EQ(Quoted("\xe2\x82"), R"("\\xe2\\x82")");  // cut off
  EXPECT_EQ(Quoted("\xc0\xaf"), R"("\\xc0\\xaf")");  // overlong
  EXPECT_EQ(Quoted("\xe0\x80\x80"), R"("\\xe0\\x80\\x80")");
  EXPECT_EQ(Quoted("\xed\xa0\x80"), R"("\\xed\\xa0\\x80")");  // a surrogate
  EXPECT_EQ(Quoted("\xf4\x90\x80\x80"), R"("\\xf4\\x90\\x80\\x80")");
  EXPECT_EQ(Quoted("\xf0\x8f\xbf\xbf"), R"("\\xf0\\x8f\\xbf\\xbf")");
}

TEST(JsonText, DropsWhatDoesNotFitAndCanGoBack) {
  char buffer[8];
  JsonText json(buffer, sizeof(buffer));
  json.Raw("1234");
  const std::size_t before = json.length();
  json.Raw("56789");
  EXPECT_TRUE(json.overflowed());
  EXPECT_EQ(json.text(), "1234");
  json.Raw("x");  // nothing may follow a gap
  EXPECT_EQ(json.text(), "1234");
  json.Rewind(before);
  EXPECT_FALSE(json.overflowed());
  json.Raw("5678");
  EXPECT_FALSE(json.overflowed());
  EXPECT_EQ(json.text(), "12345678");
  json.Raw("");
  EXPECT_FALSE(json.overflowed());
}

}  // namespace
}  // namespace hakmem
