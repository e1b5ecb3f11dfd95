// Any name and value of an environment variable: taken exactly when it should
// be, and otherwise without a trace.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "allocator/base/check.h"
#include "allocator/config/options.h"
#include "allocator/options/option_parser.h"
#include "fuzz/choices.h"

namespace hakmem {
namespace {

// What the documentation says a number is.
std::optional<std::uint64_t> NumberOf(const OptionSpec& spec,
                                      std::string_view text) {
  unsigned shift = 0;
  if (spec.type == OptionType::kBytes && !text.empty()) {
    const std::size_t suffix = std::string_view("KMGT").find(text.back());
    if (suffix != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(suffix) + 1);
      text.remove_suffix(1);
    }
  }
  if (text.empty()) return std::nullopt;
  unsigned __int128 number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + static_cast<unsigned>(digit - '0');
    if (number > kNoMaximum) return std::nullopt;
  }
  number <<= shift;
  if (number < spec.minimum || number > spec.maximum) return std::nullopt;
  return static_cast<std::uint64_t>(number);
}

// What n or n+ stands for.
std::optional<std::uint64_t> OrdinalOf(const OptionSpec& spec,
                                       std::string_view text) {
  const bool and_later = text.ends_with('+');
  if (and_later) text.remove_suffix(1);
  const auto ordinal = NumberOf(spec, text);
  if (!ordinal || (and_later && *ordinal == 0)) return std::nullopt;
  return 2 * *ordinal + (and_later ? 1 : 0);
}

// The number of a kChoice's word.
std::optional<std::uint64_t> WordOf(const OptionSpec& spec,
                                    std::string_view text) {
  std::string_view words = spec.unit;
  for (std::uint64_t number = 0;; ++number) {
    const std::size_t bar = words.find('|');
    if (words.substr(0, bar) == text) return number;
    if (bar == std::string_view::npos) return std::nullopt;
    words.remove_prefix(bar + 1);
  }
}

// What an option that is no text is set to.
std::optional<std::uint64_t> ValueOf(const OptionSpec& spec,
                                     std::string_view text) {
  switch (spec.type) {
    case OptionType::kChoice:
      return WordOf(spec, text);
    case OptionType::kOrdinal:
      return OrdinalOf(spec, text);
    case OptionType::kBytesOrAll: {
      OptionSpec bytes = spec;
      bytes.type = OptionType::kBytes;
      return text == "all" ? kNoMaximum : NumberOf(bytes, text);
    }
    default:
      return NumberOf(spec, text);
  }
}

// Whether it is SIZE:COUNT, and more after commas, or nothing.
bool IsSizes(const OptionSpec& spec, std::string_view text) {
  OptionSpec size = spec;
  size.type = OptionType::kBytes;
  OptionSpec count = spec;
  count.type = OptionType::kNumber;
  count.minimum = 0;
  count.maximum = kNoMaximum;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const std::size_t colon = item.find(':');
    if (colon == std::string_view::npos ||
        !NumberOf(size, item.substr(0, colon)) ||
        !NumberOf(count, item.substr(colon + 1))) {
      return false;
    }
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
    if (text.empty()) return false;
  }
  return true;
}

void CheckSame(const ParsedOptions& one, const ParsedOptions& two) {
  for (std::size_t i = 0; i < std::size(kOptionTable); ++i) {
    const OptionSpec& spec = kOptionTable[i];
    HAK_CHECK(one.origins[i] == two.origins[i]);
    if (spec.path != nullptr) {
      HAK_CHECK_EQ(std::strcmp(one.values.*spec.path, two.values.*spec.path),
                   0);
    } else {
      HAK_CHECK_EQ(one.values.*spec.number, two.values.*spec.number);
    }
  }
}

void CheckKnown(std::size_t index, std::string_view value) {
  const OptionSpec& spec = kOptionTable[index];
  ParsedOptions expected;
  bool valid = false;
  if (spec.path != nullptr) {
    valid = value.size() < kMaxOptionPathBytes &&
            (spec.type == OptionType::kPath || IsSizes(spec, value));
    if (valid) {
      const std::string path(value == "0" ? "" : value);
      std::strcpy(expected.values.*spec.path, path.c_str());
    }
  } else if (const auto number = ValueOf(spec, value)) {
    valid = true;
    expected.values.*spec.number = *number;
  }
  if (valid) expected.origins[index] = OptionOrigin::kEnvironment;

  ParsedOptions options;
  const OptionError error = ApplyOption(spec.name, value, options);
  HAK_CHECK_EQ(error == OptionError::kNone, valid);
  HAK_CHECK(error != OptionError::kUnknown);
  CheckSame(options, expected);
  static std::string text;
  text.clear();
  PrintConfig(options, "release",
              [](std::string_view lines) { text += lines; });
  // What the variant has; hardened alone is asked for the silence.
  const bool is_shown =
      HasOption(spec, "release") && spec.number != &Options::warn_weakened;
  HAK_CHECK_EQ(text.find(spec.name) != std::string::npos, is_shown);
}

void CheckUnknown(std::string_view name, std::string_view value) {
  for (const OptionSpec& spec : kOptionTable) {
    if (name == spec.name) return;
  }
  ParsedOptions options;
  HAK_CHECK(ApplyOption(name, value, options) == OptionError::kUnknown);
  CheckSame(options, ParsedOptions());
}

}  // namespace
}  // namespace hakmem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  hakmem::ByteChoices choices(data, size);
  const std::size_t option = choices.Below(std::size(hakmem::kOptionTable) + 1);
  std::string_view text(reinterpret_cast<const char*>(choices.rest()),
                        choices.rest_size());
  if (option < std::size(hakmem::kOptionTable)) {
    hakmem::CheckKnown(option, text);
  } else {
    const std::size_t equals = text.find('=');
    hakmem::CheckUnknown(text.substr(0, equals), text);
  }
  return 0;
}
