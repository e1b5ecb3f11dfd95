#include "tools/hakmem/words.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace hakmem::tools {
namespace {

TEST(WordsTest, BytesAreRoundedToWhatOneCanRead) {
  EXPECT_EQ(Bytes(0), "0 bytes");
  EXPECT_EQ(Bytes(1), "1 byte");
  EXPECT_EQ(Bytes(1023), "1023 bytes");
  EXPECT_EQ(Bytes(1024), "1.0 KiB");
  EXPECT_EQ(Bytes(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(Bytes(std::uint64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(Bytes(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
}

TEST(WordsTest, AHugeSizeIsShownAsTheNegativeNumberThatItWas) {
  EXPECT_EQ(SizeWithSign(4096), "4.0 KiB");
  EXPECT_EQ(SizeWithSign(~std::uint64_t{0} - 1),
            "18446744073709551614 bytes (that is -2 as a signed number)");
}

TEST(WordsTest, NothingFromATraceSteersATerminal) {
  EXPECT_EQ(ForTerminal("red \x1b[31m\n\x7f"), "red \\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(ForTerminal("größe € 😀"), "größe € 😀");
  EXPECT_EQ(ForTerminal("\xC2\x9B"), "\\xc2\\x9b");           // a C1 control
  EXPECT_EQ(ForTerminal("\xE2\x80\xAE"), "\\xe2\\x80\\xae");  // right to left
  EXPECT_EQ(ForTerminal("\xFF\xC3"), "\\xff\\xc3");
  EXPECT_EQ(ForTerminal("\xC0\xAF"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(ForTerminal("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(ForTerminal("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(WordsTest, NothingFromATraceIsMarkup) {
  EXPECT_EQ(ForHtml("<b>\"a\" & 'b'"),
            "&lt;b&gt;&quot;a&quot; &amp; &#39;b&#39;");
}

TEST(WordsTest, NothingFromATraceIsACommand) {
  EXPECT_EQ(ForShell("/sys/fs/cgroup/a.slice/memory.max"),
            "/sys/fs/cgroup/a.slice/memory.max");
  EXPECT_EQ(ForShell("a b;c"), "'a b;c'");
  EXPECT_EQ(ForShell("it's $(x)"), "'it'\\''s $(x)'");
  EXPECT_EQ(ForShell(""), "''");
}

TEST(WordsTest, LinesAreBrokenBetweenWords) {
  EXPECT_EQ(Wrapped("one two three", 10, 2), "  one two\n  three\n");
  EXPECT_EQ(Wrapped("* one two three", 10, 0, 2), "* one two\n  three\n");
  EXPECT_EQ(Wrapped("a-word-that-is-too-long b", 5, 0),
            "a-word-that-is-too-long\nb\n");
  EXPECT_EQ(Wrapped("one\ntwo", 10, 1), " one\n two\n");
  EXPECT_EQ(Wrapped("äöü äöü", 7, 0), "äöü äöü\n");
}

TEST(WordsTest, PaddingCountsCharacters) {
  EXPECT_EQ(Padded("ä", 3), "ä  ");
  EXPECT_EQ(Padded("long", 3), "long ");
}

TEST(WordsTest, CountsHaveTheirWord) {
  EXPECT_EQ(Count(1, "call", "calls"), "1 call");
  EXPECT_EQ(Count(0, "call", "calls"), "0 calls");
}

}  // namespace
}  // namespace hakmem::tools
