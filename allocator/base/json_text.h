// JSON into a buffer of the caller's: no allocation, always valid.
//
// Owns: nothing but where it stands in the buffer. Called by: failure lines.
// Thread-safety: an object belongs to one thread. Safe in signal handlers.
//
// Invariants:
//   J1: what does not fit is dropped and `overflowed()` says so; a part can be
//       taken back by Rewind, which makes the text whole again.
//   J2: every byte of a string is written so that the text is valid UTF-8.
#ifndef HAKMEM_ALLOCATOR_BASE_JSON_TEXT_H_
#define HAKMEM_ALLOCATOR_BASE_JSON_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "allocator/base/raw_print.h"

namespace hakmem {

class JsonText {
 public:
  JsonText(char* buffer, std::size_t capacity_bytes)
      : buffer_(buffer), capacity_bytes_(capacity_bytes) {}

  // As it is: braces, commas, what is known to be harmless.
  JsonText& Raw(std::string_view text);
  // In quotes. Control characters become \u00XX; a byte that is no UTF-8
  // becomes the four characters \xXX.
  JsonText& String(std::string_view text) { return Quoted(text, true); }
  // The same for readers that know no \u00XX, as OpenMetrics' labels do:
  // control characters become \\xXX.
  JsonText& Label(std::string_view text) { return Quoted(text, false); }
  JsonText& Number(std::uint64_t value) {
    return Raw(DigitBuffer(value, 10).text());
  }
  JsonText& SignedNumber(std::int64_t value);
  // "0x1f" with its quotes.
  JsonText& Hex(std::uint64_t value) {
    return Raw("\"0x").Raw(DigitBuffer(value, 16).text()).Raw("\"");
  }
  // ,"key":
  JsonText& Key(std::string_view key) { return Raw(",\"").Raw(key).Raw("\":"); }

  std::string_view text() const { return {buffer_, length_}; }
  std::size_t length() const { return length_; }
  bool overflowed() const { return overflowed_; }
  // Back to an earlier length().
  void Rewind(std::size_t length) {
    length_ = length;
    overflowed_ = false;
  }

 private:
  JsonText& Quoted(std::string_view text, bool knows_codes);
  void Escape(unsigned char c, bool knows_codes);

  char* const buffer_;
  const std::size_t capacity_bytes_;
  std::size_t length_ = 0;
  bool overflowed_ = false;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_JSON_TEXT_H_
