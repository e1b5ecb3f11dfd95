#include "allocator/base/json_text.h"

#include <cstring>

namespace hakmem {
namespace {

// How many bytes the UTF-8 sequence at the beginning of `text` has; 0: none.
// (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.)
std::size_t Utf8Bytes(std::string_view text) {
  const auto at = [text](std::size_t i) -> unsigned {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  std::size_t bytes = 0;
  unsigned lowest = 0x80;
  unsigned highest = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    bytes = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    bytes = 3;
    if (lead == 0xe0) lowest = 0xa0;
    if (lead == 0xed) highest = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    bytes = 4;
    if (lead == 0xf0) lowest = 0x90;
    if (lead == 0xf4) highest = 0x8f;
  }
  if (bytes == 0 || bytes > text.size()) return 0;
  if (at(1) < lowest || at(1) > highest) return 0;
  for (std::size_t i = 2; i < bytes; ++i) {
    if (at(i) < 0x80 || at(i) > 0xbf) return 0;
  }
  return bytes;
}

constexpr char kDigits[] = "0123456789abcdef";

}  // namespace

JsonText& JsonText::Raw(std::string_view text) {
  if (overflowed_ || text.size() > capacity_bytes_ - length_) {
    overflowed_ = true;
    return *this;
  }
  std::memcpy(buffer_ + length_, text.data(), text.size());
  length_ += text.size();
  return *this;
}

// A character that may not stand in a string as it is, or no character at all.
void JsonText::Escape(unsigned char c, bool knows_codes) {
  const char high = kDigits[c >> 4];
  const char low = kDigits[c & 15];
  if (c == '"' || c == '\\') {
    const char escaped[] = {'\\', static_cast<char>(c)};
    Raw({escaped, sizeof(escaped)});
  } else if (c < 0x80 && knows_codes) {
    const char escaped[] = {'\\', 'u', '0', '0', high, low};
    Raw({escaped, sizeof(escaped)});
  } else {
    const char escaped[] = {'\\', '\\', 'x', high, low};
    Raw({escaped, sizeof(escaped)});
  }
}

JsonText& JsonText::Quoted(std::string_view text, bool knows_codes) {
  Raw("\"");
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    std::size_t bytes = Utf8Bytes(text);
    if (bytes == 0 || c < 0x20 || c == 0x7f || c == '"' || c == '\\') {
      Escape(c, knows_codes);
      bytes = 1;
    } else {
      std::string_view whole = text;
      whole.remove_suffix(text.size() - bytes);
      Raw(whole);
    }
    text.remove_prefix(bytes);
  }
  return Raw("\"");
}

JsonText& JsonText::SignedNumber(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? Raw("-").Number(0 - bits) : Number(bits);
}

}  // namespace hakmem
