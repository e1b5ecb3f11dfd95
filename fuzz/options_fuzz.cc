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
#include "allocator/base/raw_print.h"
#include "allocator/config/options.h"
#include "allocator/diag/option_parser.h"
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

void CheckSame(const ParsedOptions& one, const ParsedOptions& two) {
  for (std::size_t i = 0; i < std::size(kOptionTable); ++i) {
    const OptionSpec& spec = kOptionTable[i];
    HAK_CHECK(one.origins[i] == two.origins[i]);
    if (spec.type == OptionType::kPath) {
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
  if (spec.type == OptionType::kPath) {
    valid = value.size() < kMaxOptionPathBytes;
    if (valid && value != "0") {
      const std::string path(value);
      std::strcpy(expected.values.*spec.path, path.c_str());
    }
  } else if (const auto number = NumberOf(spec, value)) {
    valid = true;
    expected.values.*spec.number = *number;
  }
  if (valid) expected.origins[index] = OptionOrigin::kEnvironment;

  ParsedOptions options;
  const OptionError error = ApplyOption(spec.name, value, options);
  HAK_CHECK_EQ(error == OptionError::kNone, valid);
  HAK_CHECK(error != OptionError::kUnknown);
  CheckSame(options, expected);
  RawPrinter out;
  PrintConfig(options, "release", out);
  HAK_CHECK(out.text().find(spec.name) != std::string_view::npos);
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
