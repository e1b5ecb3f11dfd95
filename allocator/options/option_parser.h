// Reads the environment options and shows the configuration.
//
// Owns: nothing. Called by: frontend, once, while the allocator initialises.
// Thread-safety: the caller serialises; never allocates.
#ifndef HAKMEM_ALLOCATOR_OPTIONS_OPTION_PARSER_H_
#define HAKMEM_ALLOCATOR_OPTIONS_OPTION_PARSER_H_

#include <cstdint>
#include <string_view>

#include "allocator/base/raw_print.h"
#include "allocator/config/options.h"

namespace hakmem {

// The origin of a value; kProgram: what the program's own code makes necessary.
enum class OptionOrigin : std::uint8_t { kDefault, kEnvironment, kProgram };

struct ParsedOptions {
  Options values;
  OptionOrigin origins[kOptionCount] = {};
};

// As other processes find them, by TableList; only those of the same version
// know what they mean.
struct OptionTables {
  char magic[8] = "hakopts";
  std::uint64_t table_bytes = sizeof(ParsedOptions);
  ParsedOptions parsed;
};

// Why a variable was not taken; the words of the warning follow from it.
enum class OptionError : std::uint8_t {
  kNone,
  kUnknown,
  kMalformed,
  kOutOfRange,
  kTooLong
};

// The word of a kChoice that stands for `number`, which its range contains.
std::string_view ChoiceWord(const OptionSpec& spec, std::uint64_t number);

// An item of a kSizes.
struct SizeAndCount {
  std::uint64_t size_bytes;
  std::uint64_t count;
};
// Takes the first item, and the comma after it, off the list. False: it is
// malformed.
bool TakeSizeAndCount(std::string_view& rest, SizeAndCount& pair);

// Whether the variant has it.
bool HasOption(const OptionSpec& spec, std::string_view variant);

// The value of an option as a person would say it, and with its unit.
void PrintOptionWithUnit(const OptionSpec& spec, const Options& options,
                         RawPrinter& out);
void PrintOptionValue(const OptionSpec& spec, const Options& options,
                      RawPrinter& out);

// Applies one variable. On any error `options` is unchanged.
OptionError ApplyOption(std::string_view name, std::string_view value,
                        ParsedOptions& options);

// Applies every HAKMEM_… variable of the environment. Each that is unknown or
// malformed is reported once on standard error, by name:
//   hakmem: warning: HAKMEM_DECAY_MS=abc is not a number of milliseconds; …
//   hakmem: warning: HAKMEM_STATS is longer than 255 bytes; using none
//   hakmem: warning: HAKMEM_FOO is not an option of hakmem; ignored
void ReadOptions(ParsedOptions& options);

// Each option of the environment that `variant` does not have is reported, too:
//   hakmem: warning: HAKMEM_LEAKS needs the debug variant; ignored
void WarnOfOtherVariants(const ParsedOptions& options,
                         std::string_view variant);

// Each option that does nothing without another, which is not given, too:
//   hakmem: warning: HAKMEM_TRACE_STACKS needs HAKMEM_TRACE; ignored
void WarnOfMissingOptions(const ParsedOptions& options,
                          std::string_view variant);

// The options of the environment that weaken the hardened variant are named,
// unless HAKMEM_WARN_WEAKENED=0:
//   hakmem: warning: weakened by HAKMEM_CLEAR=256 (HAKMEM_WARN_WEAKENED=0: …
void WarnOfWeakened(const ParsedOptions& options, std::string_view variant);

// The hardened variant's default: one allocation in so many is guarded. Comes
// before ReadOptions.
inline constexpr std::uint64_t kHardenedGuardSample = 100'000;
void SampleHardened(ParsedOptions& options, std::string_view variant);

// The origin of a number.
OptionOrigin& OriginOf(std::uint64_t Options::* number, ParsedOptions& options);

// For a program that replaces some of new and delete, or whose libraries may
// bind to others' of them: kinds are not checked unless the environment asks
// for it, because a `delete` that calls free is legal then.
void LeaveKindsAlone(ParsedOptions& options);

// HAKMEM_SHOW_CONFIG: variant, version, compiler and flags, then a line per
// option: name, value, unit, origin. `write` gets whole lines, as many at once
// as fit in a buffer.
//   hakmem 0.1.0 release, x86-64, Clang 19.1.7, optimized, ThinLTO,
//   profile 205d9a99454a, revision 1a2b3c4
//     HAKMEM_DECAY_MS=500 milliseconds (default)
void PrintConfig(const ParsedOptions& options, const char* variant,
                 void (*write)(std::string_view lines));

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_OPTIONS_OPTION_PARSER_H_
