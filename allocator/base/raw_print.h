// Formatting into a fixed buffer: no allocation, no locale, no stdio.
//
// Owns: RawPrinter's text. Called by: reports, statistics, options.
// Thread-safety: an object belongs to one thread. Safe in signal handlers.
//
// Invariants:
//   P1: the text is always terminated by NUL and never exceeds kCapacityBytes.
//   P2: text that does not fit is dropped and `truncated()` says so.
#ifndef HAKMEM_ALLOCATOR_BASE_RAW_PRINT_H_
#define HAKMEM_ALLOCATOR_BASE_RAW_PRINT_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace hakmem {

// A number's digits are made from the last to the first, so they are put at the
// end.
class DigitBuffer {
 public:
  DigitBuffer(std::uint64_t value, unsigned base) {
    do {
      digits_[--begin_] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
  }
  std::string_view text() const {
    return {digits_ + begin_, kMaxDigits - begin_};
  }

 private:
  static constexpr std::size_t kMaxDigits =
      std::numeric_limits<std::uint64_t>::digits10 + 1;
  char digits_[kMaxDigits];
  std::size_t begin_ = kMaxDigits;
};

// A file or a variable may be called anything: of that a line for people has
// ASCII's printable characters, and '?' for each other byte.
constexpr char PlainByte(char byte) {
  return byte < ' ' || byte > '~' ? '?' : byte;
}

class RawPrinter {
 public:
  static constexpr std::size_t kCapacityBytes = 2048;

  RawPrinter& Text(std::string_view text);
  RawPrinter& Decimal(std::uint64_t value);
  RawPrinter& SignedDecimal(std::int64_t value);
  // "0x" and lower-case digits, without leading zeros.
  RawPrinter& Hex(std::uint64_t value);
  RawPrinter& Pointer(const void* pointer);
  // A count of bytes for people: "512 bytes", "64.0 KiB", "1.5 GiB".
  RawPrinter& Bytes(std::uint64_t bytes);

  // Makes one plain line of all that stands from there on.
  RawPrinter& Plain(std::size_t from = 0);

  std::string_view text() const { return {buffer_, length_}; }
  const char* c_str() const { return buffer_; }
  bool truncated() const { return truncated_; }
  void Clear();

 private:
  char buffer_[kCapacityBytes] = {};
  std::size_t length_ = 0;
  bool truncated_ = false;
};

// Where text goes that may be long: whole lines, some at a time. False: they
// could not be written, and nothing else needs to be.
struct LineSink {
  bool (*write)(void* context, std::string_view lines);
  void* context;
};

// Parses a whole decimal number; false when `text` is empty, has any other
// character or overflows.
bool ParseDecimal(std::string_view text, std::uint64_t& value);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_RAW_PRINT_H_
