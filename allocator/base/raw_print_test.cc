#include "allocator/base/raw_print.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(RawPrinter, StartsEmpty) {
  const RawPrinter out;
  EXPECT_EQ(out.text(), "");
  EXPECT_STREQ(out.c_str(), "");
  EXPECT_FALSE(out.truncated());
}

TEST(RawPrinter, Numbers) {
  RawPrinter out;
  out.Decimal(0).Text(" ").Decimal(1234567890).Text(" ").Decimal(kMax);
  EXPECT_EQ(out.text(), "0 1234567890 18446744073709551615");
  out.Clear();
  out.SignedDecimal(-1).Text(" ").SignedDecimal(7).Text(" ");
  out.SignedDecimal(std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(out.text(), "-1 7 -9223372036854775808");
  out.Clear();
  out.Hex(0).Text(" ").Hex(0xabc012).Text(" ").Hex(kMax);
  EXPECT_EQ(out.text(), "0x0 0xabc012 0xffffffffffffffff");
}

TEST(RawPrinter, Pointers) {
  RawPrinter out;
  out.Pointer(nullptr).Text(" ");
  out.Pointer(reinterpret_cast<const void*>(std::uintptr_t{0x7f00}));
  EXPECT_EQ(out.text(), "0x0 0x7f00");
}

std::string BytesOf(std::uint64_t bytes) {
  RawPrinter out;
  return std::string(out.Bytes(bytes).text());
}

TEST(RawPrinter, BytesForPeople) {
  EXPECT_EQ(BytesOf(0), "0 bytes");
  EXPECT_EQ(BytesOf(1), "1 byte");
  EXPECT_EQ(BytesOf(512), "512 bytes");
  EXPECT_EQ(BytesOf(1023), "1023 bytes");
  EXPECT_EQ(BytesOf(1024), "1.0 KiB");
  EXPECT_EQ(BytesOf(65536), "64.0 KiB");
  EXPECT_EQ(BytesOf(1536ULL << 20), "1.5 GiB");
  EXPECT_EQ(BytesOf((1ULL << 20) - 1), "1.0 MiB");
  EXPECT_EQ(BytesOf(1023 * 1024 + 900), "1023.9 KiB");
  EXPECT_EQ(BytesOf(1ULL << 40), "1.0 TiB");
  EXPECT_EQ(BytesOf(1ULL << 50), "1.0 PiB");
  EXPECT_EQ(BytesOf(kMax), "16.0 EiB");
}

TEST(RawPrinter, TakesNothing) {
  RawPrinter out;
  out.Text("a").Text("").Text({}).Text("b");
  EXPECT_EQ(out.text(), "ab");
}

TEST(RawPrinter, DropsWhatDoesNotFit) {
  RawPrinter out;
  const std::string filler(RawPrinter::kCapacityBytes - 3, 'x');
  out.Text(filler);
  EXPECT_FALSE(out.truncated());
  out.Text("ab");
  EXPECT_FALSE(out.truncated());
  EXPECT_EQ(out.text(), filler + "ab");
  out.Text("c");
  EXPECT_TRUE(out.truncated());
  EXPECT_EQ(out.text(), filler + "ab");
  EXPECT_EQ(std::strlen(out.c_str()), RawPrinter::kCapacityBytes - 1);
}

TEST(RawPrinter, StaysAPrefixOnceCut) {
  RawPrinter out;
  out.Text(std::string(RawPrinter::kCapacityBytes - 2, 'x'));
  out.Text("yz").Text("w");
  EXPECT_TRUE(out.truncated());
  EXPECT_EQ(out.text().back(), 'y');
  out.Clear();
  EXPECT_FALSE(out.truncated());
  EXPECT_EQ(out.Text("again").text(), "again");
}

TEST(RawPrinter, PlainTextIsOneLine) {
  RawPrinter out;
  out.Text("\n").Text("a\nb\x1b[2J \x7f\xc2\x9b~").Plain(1);
  EXPECT_EQ(out.text(), "\na?b?[2J ???~");
}

TEST(ParseDecimal, TakesWholeNumbersOnly) {
  std::uint64_t value = 99;
  EXPECT_TRUE(ParseDecimal("0", value));
  EXPECT_EQ(value, 0u);
  EXPECT_TRUE(ParseDecimal("0042", value));
  EXPECT_EQ(value, 42u);
  EXPECT_TRUE(ParseDecimal("18446744073709551615", value));
  EXPECT_EQ(value, kMax);

  value = 99;
  for (const char* bad : {"", " 1", "1 ", "+1", "-1", "0x1", "1k", "abc",
                          "18446744073709551616", "99999999999999999999999"}) {
    EXPECT_FALSE(ParseDecimal(bad, value)) << bad;
  }
  EXPECT_EQ(value, 99u);
}

}  // namespace
}  // namespace hakmem
