#include "allocator/options/option_parser.h"

#include <stdlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "allocator/base/line_end.h"
#include "allocator/base/raw_print.h"
#include "allocator/base/sanitizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

// What ReadOptions and its warnings make of one variable.
struct Read {
  ParsedOptions options;
  std::string warnings;
};

Read ReadVariable(const std::string& name, const std::string& value) {
  Read read;
  setenv(name.c_str(), value.c_str(), 1);
  testing::internal::CaptureStderr();
  ReadOptions(read.options);
  read.warnings = testing::internal::GetCapturedStderr();
  unsetenv(name.c_str());
  return read;
}

// Without the process at its end.
std::string Warning(const std::string& name, const std::string& value) {
  std::string warning = ReadVariable(name, value).warnings;
  const std::string end(LineEnd().text());
  EXPECT_TRUE(warning.ends_with(end)) << warning;
  return warning.substr(0, warning.size() - end.size()) + "\n";
}

OptionOrigin OriginOf(const ParsedOptions& options, std::string_view name) {
  for (std::size_t i = 0; i < std::size(kOptionTable); ++i) {
    if (name == kOptionTable[i].name) return options.origins[i];
  }
  ADD_FAILURE() << "no option " << name;
  return OptionOrigin::kDefault;
}

// That the option answers so to each of the values.
void ExpectAll(OptionError error, const char* name,
               std::initializer_list<const char*> values,
               ParsedOptions& options) {
  for (const char* value : values) {
    EXPECT_EQ(ApplyOption(name, value, options), error) << value;
  }
}

TEST(OptionTable, DefaultsAreInRange) {
  const Options defaults;
  for (const OptionSpec& spec : kOptionTable) {
    SCOPED_TRACE(spec.name);
    EXPECT_EQ(std::string_view(spec.name).find("HAKMEM_"), 0u);
    const bool text =
        spec.type == OptionType::kPath || spec.type == OptionType::kSizes;
    EXPECT_EQ(text, spec.path != nullptr);
    EXPECT_EQ(text, spec.number == nullptr);
    if (spec.number == nullptr) continue;
    EXPECT_GE(defaults.*spec.number, spec.minimum);
    EXPECT_LE(defaults.*spec.number, spec.maximum);
    if (spec.type != OptionType::kChoice) continue;
    const std::string_view words = spec.unit;
    EXPECT_EQ(std::count(words.begin(), words.end(), '|'),
              static_cast<std::ptrdiff_t>(spec.maximum));
  }
}

TEST(ApplyOption, TakesNumbers) {
  ParsedOptions options;
  EXPECT_EQ(ApplyOption("HAKMEM_DECAY_MS", "77", options), OptionError::kNone);
  EXPECT_EQ(options.values.decay_ms, 77u);
  EXPECT_EQ(OriginOf(options, "HAKMEM_DECAY_MS"), OptionOrigin::kEnvironment);
  EXPECT_EQ(OriginOf(options, "HAKMEM_DEPOT"), OptionOrigin::kDefault);
  EXPECT_EQ(ApplyOption("HAKMEM_DECAY_MS", "0", options), OptionError::kNone);
  EXPECT_EQ(options.values.decay_ms, 0u);
}

TEST(ApplyOption, TakesFlags) {
  ParsedOptions options;
  EXPECT_EQ(ApplyOption("HAKMEM_SHOW_CONFIG", "1", options),
            OptionError::kNone);
  EXPECT_EQ(options.values.show_config, 1u);
  ExpectAll(OptionError::kMalformed, "HAKMEM_SHOW_CONFIG",
            {"2", "yes", "", "-1", "1K"}, options);
  EXPECT_EQ(options.values.show_config, 1u);
}

TEST(ApplyOption, TakesWords) {
  ParsedOptions options;
  for (const auto& [word, number] :
       {std::pair<const char*, unsigned>{"on", 2}, {"off", 0}, {"auto", 1}}) {
    EXPECT_EQ(ApplyOption("HAKMEM_HUGE_PAGES", word, options),
              OptionError::kNone);
    EXPECT_EQ(options.values.huge_pages, number);
  }
  ExpectAll(OptionError::kMalformed, "HAKMEM_HUGE_PAGES",
            {"", "ON", "o", "off|auto", "onn", "1"}, options);
  EXPECT_EQ(options.values.huge_pages, 1u);
  EXPECT_EQ(Warning("HAKMEM_PREFAULT", "all"),
            "hakmem: warning: HAKMEM_PREFAULT=all is none of "
            "off|populate; using off\n");
}

TEST(ApplyOption, TakesBytesOrAll) {
  ParsedOptions options;
  EXPECT_EQ(options.values.clear_bytes, kClearAll);
  for (const auto& [text, bytes] :
       {std::pair<const char*, std::uint64_t>{"256", 256},
        {"16", 16},
        {"4K", 4096},
        {"all", kClearAll}}) {
    EXPECT_EQ(ApplyOption("HAKMEM_CLEAR", text, options), OptionError::kNone);
    EXPECT_EQ(options.values.clear_bytes, bytes);
  }
  ExpectAll(OptionError::kMalformed, "HAKMEM_CLEAR",
            {"", "ALL", "al", "none", "all ", "-1", "16x"}, options);
  ExpectAll(OptionError::kOutOfRange, "HAKMEM_CLEAR",
            {"0", "15", "99999999999999999999"}, options);
  EXPECT_EQ(options.values.clear_bytes, kClearAll);
  EXPECT_EQ(ApplyOption("HAKMEM_MAX_ALLOC", "all", options),
            OptionError::kMalformed);
  EXPECT_EQ(Warning("HAKMEM_CLEAR", "some"),
            "hakmem: warning: HAKMEM_CLEAR=some is not a number of bytes or "
            "all; using all\n");
  EXPECT_EQ(Warning("HAKMEM_CLEAR", "8"),
            "hakmem: warning: HAKMEM_CLEAR=8 is out of range, 16 to "
            "18446744073709551615 bytes or all; using all\n");
}

TEST(ApplyOption, TakesListsOfSizes) {
  ParsedOptions options;
  for (const char* good : {"64:1000", "64K:1", "48:10,2K:20,65536:0", ""}) {
    EXPECT_EQ(ApplyOption("HAKMEM_PREWARM", good, options), OptionError::kNone)
        << good;
    EXPECT_STREQ(options.values.prewarm, good);
  }
  ExpectAll(
      OptionError::kMalformed, "HAKMEM_PREWARM",
      {"64", ":", "64:", ":3", "64:3,", ",64:3", "64:3,,1:1", "64:3 ", "64:-1",
       "64:1K", "x:1", "64:3;1:1", "K:1", "18014398509481985K:1"},
      options);
  ExpectAll(OptionError::kOutOfRange, "HAKMEM_PREWARM",
            {"0:1", "65537:1", "65K:1", "64:1,1M:2"}, options);
  EXPECT_STREQ(options.values.prewarm, "");
  EXPECT_EQ(Warning("HAKMEM_PREWARM", "many"),
            "hakmem: warning: HAKMEM_PREWARM=many is not "
            "SIZE:COUNT[,SIZE:COUNT...]; using none\n");
  EXPECT_EQ(Warning("HAKMEM_PREWARM", "1M:1"),
            "hakmem: warning: HAKMEM_PREWARM=1M:1 is out of range, 1 to 65536 "
            "bytes; using none\n");
}

TEST(ReadSizes, TakesOneAfterTheOther) {
  std::string_view rest = "48:10,2K:20";
  SizeAndCount pair = {};
  ASSERT_TRUE(TakeSizeAndCount(rest, pair));
  EXPECT_EQ(pair.size_bytes, 48u);
  EXPECT_EQ(pair.count, 10u);
  ASSERT_TRUE(TakeSizeAndCount(rest, pair));
  EXPECT_EQ(pair.size_bytes, 2048u);
  EXPECT_EQ(pair.count, 20u);
  EXPECT_TRUE(rest.empty());
}

TEST(ApplyOption, TakesOrdinals) {
  ParsedOptions options;
  const auto fail_nth = [&options](std::string_view value) {
    const OptionError error = ApplyOption("HAKMEM_FAIL_NTH", value, options);
    EXPECT_EQ(error, OptionError::kNone) << value;
    return options.values.fail_nth;
  };
  EXPECT_EQ(fail_nth("1"), 2u);
  EXPECT_EQ(fail_nth("1+"), 3u);
  EXPECT_EQ(fail_nth("12345"), 24690u);
  EXPECT_EQ(fail_nth("0"), 0u);
  ExpectAll(OptionError::kMalformed, "HAKMEM_FAIL_NTH",
            {"", "+", "+1", "1++", "1 +", "n", "-1", "0+"}, options);
  ExpectAll(OptionError::kOutOfRange, "HAKMEM_FAIL_NTH",
            {"4294967297", "4294967297+"}, options);
  EXPECT_EQ(ApplyOption("HAKMEM_FAIL_NTH", "7+", options), OptionError::kNone);
  RawPrinter out;
  for (const OptionSpec& spec : kOptionTable) {
    if (std::string_view(spec.name) == "HAKMEM_FAIL_NTH") {
      PrintOptionValue(spec, options.values, out);
    }
  }
  EXPECT_EQ(out.text(), "7+");
}

TEST(ApplyOption, TakesBytesWithSuffixes) {
  ParsedOptions options;
  const auto heap_limit = [&options](std::string_view value) {
    const OptionError error = ApplyOption("HAKMEM_HEAP_LIMIT", value, options);
    EXPECT_EQ(error, OptionError::kNone) << value;
    return options.values.heap_limit_bytes;
  };
  EXPECT_EQ(heap_limit("4096"), 4096u);
  EXPECT_EQ(heap_limit("3K"), 3072u);
  EXPECT_EQ(heap_limit("64M"), 64u << 20);
  EXPECT_EQ(heap_limit("2G"), std::uint64_t{2} << 30);
  EXPECT_EQ(heap_limit("16777215T"), std::uint64_t{16777215} << 40);
  EXPECT_EQ(heap_limit("18446744073709551615"), kMax);
}

TEST(ApplyOption, RefusesWhatIsNoNumber) {
  for (const char* bad : {"", "K", "abc", "-1", "+1", "1.5G", "1KB", "1 K",
                          "0x10", "1k", " 1", "KK"}) {
    ParsedOptions options;
    EXPECT_EQ(ApplyOption("HAKMEM_HEAP_LIMIT", bad, options),
              OptionError::kMalformed)
        << bad;
    EXPECT_EQ(options.values.heap_limit_bytes, kMax);
    EXPECT_EQ(OriginOf(options, "HAKMEM_HEAP_LIMIT"), OptionOrigin::kDefault);
  }
  // Only bytes have suffixes.
  ParsedOptions options;
  EXPECT_EQ(ApplyOption("HAKMEM_DECAY_MS", "1K", options),
            OptionError::kMalformed);
}

TEST(ApplyOption, RefusesWhatIsOutOfRange) {
  ParsedOptions options;
  EXPECT_EQ(ApplyOption("HAKMEM_DECAY_MS", "86400000", options),
            OptionError::kNone);
  ExpectAll(OptionError::kOutOfRange, "HAKMEM_DECAY_MS",
            {"86400001", "99999999999999999999999999"}, options);
  EXPECT_EQ(options.values.decay_ms, 86400000u);
  ExpectAll(OptionError::kOutOfRange, "HAKMEM_HEAP_LIMIT",
            {"0", "16777216T", "18446744073709551616", "18446744073709551615K"},
            options);
}

TEST(ApplyOption, TakesPaths) {
  ParsedOptions options;
  for (const char* path : {"/tmp/a b", "1", ""}) {
    EXPECT_EQ(ApplyOption("HAKMEM_STATS", path, options), OptionError::kNone);
    EXPECT_STREQ(options.values.stats, path);
  }
  EXPECT_EQ(ApplyOption("HAKMEM_STATS", "0", options), OptionError::kNone);
  EXPECT_STREQ(options.values.stats, "");
}

TEST(ApplyOption, RefusesPathsThatDoNotFit) {
  ParsedOptions options;
  const std::string longest(kMaxOptionPathBytes - 1, 'x');
  EXPECT_EQ(ApplyOption("HAKMEM_STATS", longest, options), OptionError::kNone);
  EXPECT_EQ(options.values.stats, longest);
  EXPECT_EQ(ApplyOption("HAKMEM_STATS", longest + "y", options),
            OptionError::kTooLong);
  EXPECT_EQ(options.values.stats, longest);
}

TEST(ApplyOption, KnowsOnlyItsNames) {
  ParsedOptions options;
  for (const char* name : {"HAKMEM_FOO", "HAKMEM_", "HAKMEM_DECAY",
                           "HAKMEM_DECAY_MS2", "DECAY_MS", ""}) {
    EXPECT_EQ(ApplyOption(name, "1", options), OptionError::kUnknown) << name;
  }
}

TEST(ReadOptions, ReadsTheEnvironmentSilently) {
  const Read read = ReadVariable("HAKMEM_DECAY_MS", "77");
  EXPECT_EQ(read.warnings, "");
  EXPECT_EQ(read.options.values.decay_ms, 77u);
  EXPECT_EQ(ReadVariable("HAKMEM_LIBRARY_DIR", "/usr/lib").warnings, "");
}

TEST(ReadOptions, WarnsByName) {
  EXPECT_EQ(Warning("HAKMEM_DECAY_MS", "abc"),
            "hakmem: warning: HAKMEM_DECAY_MS=abc is not a number of "
            "milliseconds; using 500\n");
  EXPECT_EQ(Warning("HAKMEM_DECAY_MS", ""),
            "hakmem: warning: HAKMEM_DECAY_MS= is not a number of "
            "milliseconds; using 500\n");
  EXPECT_EQ(Warning("HAKMEM_FOO", "1"),
            "hakmem: warning: HAKMEM_FOO is not an option of hakmem; "
            "ignored\n");
  EXPECT_EQ(Warning("HAKMEM_SHOW_CONFIG", "yes"),
            "hakmem: warning: HAKMEM_SHOW_CONFIG=yes is not 0 or 1; using 0\n");
  EXPECT_EQ(Warning("HAKMEM_HEAP_LIMIT", "lots"),
            "hakmem: warning: HAKMEM_HEAP_LIMIT=lots is not a number of "
            "bytes; using unlimited\n");
  EXPECT_EQ(Warning("HAKMEM_DECAY_MS", "99999999"),
            "hakmem: warning: HAKMEM_DECAY_MS=99999999 is out of range, 0 to "
            "86400000 milliseconds; using 500\n");
  EXPECT_EQ(Warning("HAKMEM_DEPOT", "2G"),
            "hakmem: warning: HAKMEM_DEPOT=2G is out of range, 0 to "
            "1073741824 bytes; using 8388608\n");
  EXPECT_EQ(Warning("HAKMEM_STATS", std::string(256, 'x')),
            "hakmem: warning: HAKMEM_STATS is longer than 255 bytes; using "
            "none\n");
}

TEST(ReadOptions, WarningsAreOneReadableLine) {
  EXPECT_EQ(Warning("HAKMEM_DECAY_MS", "a\nb\x1b[2J\xff"),
            "hakmem: warning: HAKMEM_DECAY_MS=a?b?[2J? is not a number of "
            "milliseconds; using 500\n");
  EXPECT_EQ(Warning("HAKMEM_DECAY_MS", std::string(10000, 'x')),
            "hakmem: warning: HAKMEM_DECAY_MS=" + std::string(64, 'x') +
                "... is not a number of milliseconds; using 500\n");
  EXPECT_EQ(Warning("HAKMEM_" + std::string(100, 'X'), "1"),
            "hakmem: warning: HAKMEM_" + std::string(57, 'X') +
                "... is not an option of hakmem; ignored\n");
}

std::string ConfigText(const ParsedOptions& options, const char* variant) {
  static std::string text;
  text.clear();
  PrintConfig(options, variant, [](std::string_view lines) {
    EXPECT_TRUE(lines.ends_with('\n'));
    text += lines;
  });
  return text;
}

// The lines after the first, which depends on the build.
std::string OptionLines(const ParsedOptions& options,
                        const char* variant = "release") {
  const std::string text = ConfigText(options, variant);
  return text.substr(text.find('\n') + 1);
}

TEST(PrintConfig, ShowsVariantVersionCompilerAndFlags) {
  const std::string text = ConfigText({}, "hardened");
  const std::string first = text.substr(0, text.find('\n'));
  EXPECT_EQ(first.find("hakmem 0.1.0 hardened, "), 0u);
  EXPECT_NE(first.find(__VERSION__), std::string::npos);
  EXPECT_NE(first.find("optimized"), std::string::npos);
  EXPECT_NE(first.find(", revision "), std::string::npos);
  EXPECT_EQ(first.find("AddressSanitizer") != std::string::npos,
            kAddressSanitizer);
  EXPECT_EQ(first.find("ThreadSanitizer") != std::string::npos,
            kThreadSanitizer);
  EXPECT_EQ(first.find("UndefinedBehaviorSanitizer") != std::string::npos,
            kUndefinedBehaviorSanitizer);
}

constexpr char kDefaultLines[] =
    "  HAKMEM_SHOW_CONFIG=0 (default)\n"
    "  HAKMEM_STATS=none (default)\n"
    "  HAKMEM_STATS_AT_SIGNALS=0 (default)\n"
    "  HAKMEM_DECAY_MS=500 milliseconds (default)\n"
    "  HAKMEM_BACKGROUND=0 (default)\n  HAKMEM_CONTROL=0 (default)\n"
    "  HAKMEM_MAX_ALLOC=unlimited (default)\n"
    "  HAKMEM_HEAP_LIMIT=unlimited (default)\n"
    "  HAKMEM_DEPOT=8388608 bytes (default)\n"
    "  HAKMEM_HUGE_PAGES=auto (default)\n"
    "  HAKMEM_PREFAULT=off (default)\n"
    "  HAKMEM_PREWARM=none (default)\n"
    "  HAKMEM_CHECK_SIZES=1 (default)\n"
    "  HAKMEM_ACE_TRACE=none (default)\n"
    "  HAKMEM_UNWIND=tables (default)\n"
    "  HAKMEM_GUARD_SAMPLE=0 allocations (default)\n"
    "  HAKMEM_PROFILE_BYTES=524288 bytes (default)\n"
    "  HAKMEM_HEAP_PROFILE=none (default)\n"
    "  HAKMEM_ON_MISUSE=abort (default)\n"
    "  HAKMEM_REPORT=standard error (default)\n"
    "  HAKMEM_CRASH_REPORT=0 (default)\n"
    "  HAKMEM_DEEP_BIND=0 (default)\n"
    "  HAKMEM_FAIL_NTH=0 (default)\n";

TEST(PrintConfig, ShowsDefaults) { EXPECT_EQ(OptionLines({}), kDefaultLines); }

TEST(PrintConfig, ShowsWhereReportsGoThatHaveNoPath) {
  const ParsedOptions options = ReadVariable("HAKMEM_REPORT", "0").options;
  EXPECT_NE(OptionLines(options).find(
                "  HAKMEM_REPORT=standard error (environment)\n"),
            std::string::npos);
}

TEST(PrintConfig, ShowsWhatTheProgramMakesNecessary) {
  constexpr char kLeftAlone[] =
      "  HAKMEM_CHECK_KINDS=0 (the program or its libraries may bring new and "
      "delete of their own)\n";
  ParsedOptions options;
  LeaveKindsAlone(options);
  EXPECT_EQ(options.values.check_kinds, 0u);
  EXPECT_NE(OptionLines(options, "hardened").find(kLeftAlone),
            std::string::npos);
  // What a variant does not have, is not shown as if it held.
  EXPECT_EQ(OptionLines(options).find("CHECK_KINDS"), std::string::npos);
  // Who asks for it has it.
  ParsedOptions asked;
  ASSERT_EQ(ApplyOption("HAKMEM_CHECK_KINDS", "1", asked), OptionError::kNone);
  LeaveKindsAlone(asked);
  EXPECT_EQ(asked.values.check_kinds, 1u);
}

TEST(PrintConfig, ShowsWhatTheEnvironmentHasSet) {
  ParsedOptions options;
  ASSERT_EQ(ApplyOption("HAKMEM_SHOW_CONFIG", "1", options),
            OptionError::kNone);
  ASSERT_EQ(ApplyOption("HAKMEM_STATS", "1", options), OptionError::kNone);
  ASSERT_EQ(ApplyOption("HAKMEM_HEAP_LIMIT", "1G", options),
            OptionError::kNone);
  ASSERT_EQ(ApplyOption("HAKMEM_DECAY_MS", "500", options), OptionError::kNone);
  ASSERT_EQ(ApplyOption("HAKMEM_REPORT", "a\nb\xc3\xbc", options),
            OptionError::kNone);
  std::string expected = kDefaultLines;
  for (const auto& [before, now] :
       {std::pair{"SHOW_CONFIG=0 (default)", "SHOW_CONFIG=1 (environment)"},
        {"STATS=none (default)", "STATS=standard error (environment)"},
        {"HEAP_LIMIT=unlimited (default)",
         "HEAP_LIMIT=1073741824 bytes (environment)"},
        {"REPORT=standard error (default)", "REPORT=a?b?? (environment)"},
        {"DECAY_MS=500 milliseconds (default)",
         "DECAY_MS=500 milliseconds (environment)"}}) {
    expected.replace(expected.find(before), std::strlen(before), now);
  }
  EXPECT_EQ(OptionLines(options), expected);
}

TEST(PrintConfig, ShowsWhatAVariantHas) {
  ParsedOptions options;
  ASSERT_EQ(ApplyOption("HAKMEM_TRACE", "1", options), OptionError::kNone);
  ASSERT_EQ(ApplyOption("HAKMEM_CLEAR", "1K", options), OptionError::kNone);
  EXPECT_THAT(OptionLines(options, "tracing"),
              AllOf(HasSubstr("HAKMEM_TRACE=1 (environment)"),
                    Not(HasSubstr("HAKMEM_CLEAR"))));
  EXPECT_THAT(OptionLines(options, "hardened"),
              AllOf(HasSubstr("HAKMEM_CLEAR=1024 bytes (environment)"),
                    Not(HasSubstr("HAKMEM_TRACE"))));
}

TEST(PrintConfig, ShowsTheLongestValues) {
  ParsedOptions options;
  std::string expected = kDefaultLines;
  for (const OptionSpec& spec : kOptionTable) {
    const std::string name = std::string(spec.name) + "=";
    // Not all are of this variant.
    if (spec.path == nullptr || expected.find(name) == std::string::npos) {
      continue;
    }
    std::string value = "16:1";
    if (spec.type != OptionType::kSizes) value.assign(1, '/');
    while (value.size() + 5 < kMaxOptionPathBytes) {
      value += spec.type == OptionType::kSizes ? ",16:1" : "/path";
    }
    ASSERT_EQ(ApplyOption(spec.name, value, options), OptionError::kNone);
    const std::size_t begin = expected.find(name) + name.size();
    const std::size_t end = expected.find('\n', begin);
    expected.replace(begin, end - begin, value + " (environment)");
  }
  EXPECT_GT(expected.size(), RawPrinter::kCapacityBytes);
  EXPECT_EQ(OptionLines(options), expected);
}

}  // namespace
}  // namespace hakmem
