#include "tools/hakmem/words.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "allocator/base/planted_defect.h"

namespace hakmem::tools {
namespace {

constexpr std::uint64_t kLargestSigned = ~std::uint64_t{0} >> 1;

bool IsContinuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// The length of the character at the front of `text`, or 0 where the bytes are
// no UTF-8 or a control character.
std::size_t PrintableLength(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  const bool control = first == 0xC2 && second < 0xA0;
  const bool overlong =
      (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool beyond = first == 0xF4 && second >= 0x90;
  // Changes of the writing direction can make a line say something else.
  const bool bidirectional =
      length == 3 && first == 0xE2 &&
      ((second == 0x80 && static_cast<unsigned char>(text[2]) >= 0xAA &&
        static_cast<unsigned char>(text[2]) <= 0xAE) ||
       (second == 0x81 && static_cast<unsigned char>(text[2]) >= 0xA6 &&
        static_cast<unsigned char>(text[2]) <= 0xA9));
  return control || overlong || surrogate || beyond || bidirectional ? 0
                                                                     : length;
}

}  // namespace

std::string Bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 7> kUnits = {
      "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes == 1) return "1 byte";
  if (bytes < 1024) return absl::StrCat(bytes, " bytes");
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.96 would be written as 1024.0.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string SignedBytes(std::int64_t bytes) {
  const auto number = static_cast<std::uint64_t>(bytes);
  return bytes < 0 ? absl::StrCat("-", Bytes(0 - number))
                   : absl::StrCat("+", Bytes(number));
}

std::string Count(std::uint64_t count, std::string_view one,
                  std::string_view many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

std::string SizeWithSign(std::uint64_t size) {
  if (size <= kLargestSigned) return Bytes(size);
  return absl::StrCat(size, " bytes (that is -", ~size + 1,
                      " as a signed number)");
}

std::string ForTerminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = PrintableLength(text);
    if (length == 0) {
      absl::StrAppendFormat(&out, "\\x%02x",
                            static_cast<unsigned char>(text[0]));
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string ForShell(std::string_view text) {
  const std::string shown = ForTerminal(text);
  const bool plain =
      !shown.empty() && std::all_of(shown.begin(), shown.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
               absl::StrContains("_./:@%+,-", c);
      });
  if (plain) return shown;
  return absl::StrCat("'", absl::StrReplaceAll(shown, {{"'", "'\\''"}}), "'");
}

std::string ForHtml(std::string_view text) {
  return absl::StrReplaceAll(
      ForTerminal(text),
      {{"&", "&amp;"},
       {"<", PlantedDefect(Defect::kMarkupIsKept) ? "<" : "&lt;"},
       {">", "&gt;"},
       {"\"", "&quot;"},
       {"'", "&#39;"}});
}

std::string_view FileName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::size_t Columns(std::string_view utf8) {
  std::size_t columns = 0;
  for (const char byte : utf8) columns += IsContinuation(byte) ? 0 : 1;
  return columns;
}

std::string Wrapped(std::string_view text, std::size_t columns,
                    std::size_t indent, std::size_t hanging) {
  std::string out;
  std::size_t margin = indent;
  for (const std::string_view line : absl::StrSplit(text, '\n')) {
    std::size_t used = 0;
    for (const std::string_view word :
         absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      const std::size_t width = Columns(word);
      if (used > 0 && margin + used + 1 + width > columns) {
        out += '\n';
        used = 0;
        margin = indent + hanging;
      }
      absl::StrAppend(&out, used == 0 ? std::string(margin, ' ') : " ", word);
      used += width + (used == 0 ? 0 : 1);
    }
    out += '\n';
    margin = indent + hanging;
  }
  return out;
}

std::string Padded(std::string_view text, std::size_t columns) {
  const std::size_t used = Columns(text);
  return absl::StrCat(text,
                      std::string(used < columns ? columns - used : 1, ' '));
}

}  // namespace hakmem::tools
