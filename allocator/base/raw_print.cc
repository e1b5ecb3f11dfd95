#include "allocator/base/raw_print.h"

#include <bit>
#include <cstring>
#include <limits>

namespace hakmem {

RawPrinter& RawPrinter::Text(std::string_view text) {
  // After the first piece that was cut nothing may follow: the text stays a
  // prefix of what was meant.
  if (truncated_ || text.empty()) return *this;
  const std::size_t room = kCapacityBytes - 1 - length_;
  const std::size_t count = text.size() < room ? text.size() : room;
  truncated_ = count < text.size();
  std::memcpy(buffer_ + length_, text.data(), count);
  length_ += count;
  buffer_[length_] = '\0';
  return *this;
}

RawPrinter& RawPrinter::Decimal(std::uint64_t value) {
  return Text(DigitBuffer(value, 10).text());
}

RawPrinter& RawPrinter::SignedDecimal(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  // In unsigned arithmetic, because the lowest value has no negation.
  return value < 0 ? Text("-").Decimal(0 - bits) : Decimal(bits);
}

RawPrinter& RawPrinter::Hex(std::uint64_t value) {
  return Text("0x").Text(DigitBuffer(value, 16).text());
}

RawPrinter& RawPrinter::Pointer(const void* pointer) {
  return Hex(reinterpret_cast<std::uintptr_t>(pointer));
}

RawPrinter& RawPrinter::Bytes(std::uint64_t bytes) {
  if (bytes < 1024) return Decimal(bytes).Text(bytes == 1 ? " byte" : " bytes");
  constexpr const char* kUnits[] = {" KiB", " MiB", " GiB",
                                    " TiB", " PiB", " EiB"};
  auto unit = static_cast<unsigned>((std::bit_width(bytes) - 1) / 10);
  const std::uint64_t one = std::uint64_t{1} << (10 * unit);
  std::uint64_t tenths = bytes / one * 10 + (bytes % one * 10 + one / 2) / one;
  // 1023.96 KiB is 1.0 MiB when it is rounded.
  if (tenths == 10240) {
    tenths = 10;
    ++unit;
  }
  Decimal(tenths / 10).Text(".").Decimal(tenths % 10);
  return Text(kUnits[unit - 1]);
}

RawPrinter& RawPrinter::Plain(std::size_t from) {
  for (; from < length_; ++from) buffer_[from] = PlainByte(buffer_[from]);
  return *this;
}

void RawPrinter::Clear() {
  length_ = 0;
  buffer_[0] = '\0';
  truncated_ = false;
}

bool ParseDecimal(std::string_view text, std::uint64_t& value) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  if (text.empty()) return false;
  std::uint64_t result = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (result > (kMax - digit) / 10) return false;
    result = result * 10 + digit;
  }
  value = result;
  return true;
}

}  // namespace hakmem
