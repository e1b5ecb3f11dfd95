#include "allocator/options/option_parser.h"

#include <cstddef>
#include <cstring>

#include "allocator/base/build_info.h"
#include "allocator/base/planted_defect.h"
#include "allocator/base/revision.h"
#include "allocator/config/version.h"
#include "allocator/process/process.h"

namespace hakmem {

namespace {

// By OptionOrigin.
constexpr const char* kOriginWords[] = {
    " (default)\n", " (environment)\n",
    " (the program or its libraries may bring new and delete of their own)\n"};

// The row of the table, or null.
const OptionSpec* FindOption(std::string_view name) {
  for (const OptionSpec& spec : kOptionTable) {
    if (name == spec.name) return &spec;
  }
  return nullptr;
}

OptionOrigin OriginAt(const OptionSpec& spec, const ParsedOptions& options) {
  return options.origins[&spec - kOptionTable.data()];
}

// The shift that a suffix stands for; 0 when `c` is none.
unsigned SuffixShift(char c) {
  switch (c) {
    case 'K':
      return 10;
    case 'M':
      return 20;
    case 'G':
      return 30;
    case 'T':
      return 40;
    default:
      return 0;
  }
}

bool CountsBytes(OptionType type) {
  return type == OptionType::kBytes || type == OptionType::kBytesOrAll;
}

OptionError ParseNumber(const OptionSpec& spec, std::string_view text,
                        std::uint64_t& number) {
  unsigned shift = 0;
  if (spec.type == OptionType::kBytesOrAll && text == "all") {
    number = kNoMaximum;
    return OptionError::kNone;
  }
  if (CountsBytes(spec.type) && !text.empty()) {
    shift = SuffixShift(text.back());
    if (shift != 0) text.remove_suffix(1);
  }
  std::uint64_t digits = 0;
  if (!ParseDecimal(text, digits)) {
    // A number still, if only too large?
    if (text.empty()) return OptionError::kMalformed;
    for (const char c : text) {
      if (c < '0' || c > '9') return OptionError::kMalformed;
    }
    return OptionError::kOutOfRange;
  }
  if (digits > (kNoMaximum >> shift)) return OptionError::kOutOfRange;
  digits <<= shift;
  const bool one_too_many = digits - 1 == spec.maximum &&
                            PlantedDefect(Defect::kOptionMaximumPlusOne);
  if (digits < spec.minimum || (digits > spec.maximum && !one_too_many)) {
    // "0 or 1" says it better than a range.
    return spec.type == OptionType::kFlag ? OptionError::kMalformed
                                          : OptionError::kOutOfRange;
  }
  number = digits;
  return OptionError::kNone;
}

OptionError ParseChoice(const OptionSpec& spec, std::string_view text,
                        std::uint64_t& number) {
  for (std::uint64_t i = 0; i <= spec.maximum; ++i) {
    if (text != ChoiceWord(spec, i)) continue;
    number = i;
    return OptionError::kNone;
  }
  return OptionError::kMalformed;
}

OptionError ParseOrdinal(const OptionSpec& spec, std::string_view text,
                         std::uint64_t& number) {
  const bool and_later = text.ends_with('+');
  if (and_later) text.remove_suffix(1);
  std::uint64_t ordinal = 0;
  const OptionError error = ParseNumber(spec, text, ordinal);
  if (error != OptionError::kNone) return error;
  // None, and those that follow.
  if (and_later && ordinal == 0) return OptionError::kMalformed;
  number = 2 * ordinal + (and_later ? 1 : 0);
  return OptionError::kNone;
}

OptionError ParsePath(std::string_view text,
                      char (&path)[kMaxOptionPathBytes]) {
  if (text.size() >= sizeof(path)) return OptionError::kTooLong;
  if (text.empty() || text == "0") {
    path[0] = '\0';
    return OptionError::kNone;
  }
  std::memcpy(path, text.data(), text.size());
  path[text.size()] = '\0';
  return OptionError::kNone;
}

// The length of the list is its own business: it is the path's.
OptionError ParseSizes(const OptionSpec& spec, std::string_view text,
                       char (&list)[kMaxOptionPathBytes]) {
  SizeAndCount pair;
  for (std::string_view rest = text; !rest.empty();) {
    if (!TakeSizeAndCount(rest, pair)) return OptionError::kMalformed;
    if (pair.size_bytes < spec.minimum || pair.size_bytes > spec.maximum) {
      return OptionError::kOutOfRange;
    }
  }
  return ParsePath(text, list);
}

// A value from the environment.
void PrintForeign(std::string_view text, RawPrinter& out) {
  constexpr std::size_t kMaxBytes = 64;
  out.Text(text.substr(0, kMaxBytes));
  if (text.size() > kMaxBytes) out.Text("...");
}

void PrintWarning(std::string_view name, std::string_view value,
                  OptionError error, const ParsedOptions& options,
                  RawPrinter& out) {
  out.Text("hakmem: warning: ");
  PrintForeign(name, out);
  const OptionSpec* const spec = FindOption(name);
  if (spec == nullptr) {
    out.Text(" is not an option of hakmem; ignored");
    return;
  }
  const std::string_view unit = spec->unit;
  const char* or_all = spec->type == OptionType::kBytesOrAll ? " or all" : "";
  if (error == OptionError::kTooLong) {
    out.Text(" is longer than ").Decimal(kMaxOptionPathBytes - 1);
    out.Text(" bytes");
  } else {
    out.Text("=");
    PrintForeign(value, out);
    if (error == OptionError::kOutOfRange) {
      out.Text(" is out of range, ").Decimal(spec->minimum).Text(" to ");
      out.Decimal(spec->maximum).Text(unit.empty() ? "" : " ");
      out.Text(spec->type == OptionType::kSizes ? "bytes" : unit);
      out.Text(or_all);
    } else if (spec->type == OptionType::kFlag) {
      out.Text(" is not 0 or 1");
    } else if (spec->type == OptionType::kChoice) {
      out.Text(" is none of ").Text(unit);
    } else if (spec->type == OptionType::kSizes) {
      out.Text(" is not ").Text(unit);
    } else {
      out.Text(" is not a number").Text(unit.empty() ? "" : " of ").Text(unit);
      out.Text(or_all);
    }
  }
  out.Text("; using ");
  PrintOptionValue(*spec, options.values, out);
}

void VisitVariable(void* context, std::string_view name, const char* value) {
  auto& options = *static_cast<ParsedOptions*>(context);
  const OptionError error = ApplyOption(name, value, options);
  // `hakmem run` reads the other.
  if (error == OptionError::kNone || name == "HAKMEM_LIBRARY_DIR") return;
  RawPrinter out;
  PrintWarning(name, value, error, options, out);
  WriteWarning(out);
}

}  // namespace

void PrintOptionValue(const OptionSpec& spec, const Options& options,
                      RawPrinter& out) {
  if (spec.path != nullptr) {
    const std::string_view path = options.*spec.path;
    if (path.empty()) {
      out.Text(spec.path == &Options::report ? "standard error" : "none");
    } else {
      const bool on_stderr = path == "1" && spec.one_is_stderr;
      out.Text(on_stderr ? "standard error" : path);
    }
  } else if (spec.type == OptionType::kChoice) {
    out.Text(ChoiceWord(spec, options.*spec.number));
  } else if (spec.type == OptionType::kOrdinal) {
    out.Decimal(options.*spec.number / 2);
    if (options.*spec.number % 2 != 0) out.Text("+");
  } else if (CountsBytes(spec.type) && options.*spec.number == kNoMaximum) {
    out.Text(spec.type == OptionType::kBytes ? "unlimited" : "all");
  } else {
    out.Decimal(options.*spec.number);
  }
}

bool HasOption(const OptionSpec& spec, std::string_view variant) {
  const std::string_view variants = spec.variants;
  return variants.empty() || variants.find(variant) != std::string_view::npos;
}

void PrintOptionWithUnit(const OptionSpec& spec, const Options& options,
                         RawPrinter& out) {
  PrintOptionValue(spec, options, out);
  // The units of other types say what may stand for one.
  const bool counts =
      spec.type == OptionType::kNumber ||
      (CountsBytes(spec.type) && options.*spec.number != kNoMaximum);
  if (counts && spec.unit[0] != '\0') out.Text(" ").Text(spec.unit);
}

std::string_view ChoiceWord(const OptionSpec& spec, std::uint64_t number) {
  std::string_view words = spec.unit;
  for (; number != 0; --number) words.remove_prefix(words.find('|') + 1);
  return words.substr(0, words.find('|'));
}

bool TakeSizeAndCount(std::string_view& rest, SizeAndCount& pair) {
  const std::size_t comma = rest.find(',');
  const std::string_view item = rest.substr(0, comma);
  const std::size_t colon = item.find(':');
  if (colon == std::string_view::npos) return false;
  std::string_view size = item.substr(0, colon);
  // Not substr: its exception would be a symbol that libc does not have.
  std::string_view count = item;
  count.remove_prefix(colon + 1);
  const unsigned shift = size.empty() ? 0 : SuffixShift(size.back());
  if (shift != 0) size.remove_suffix(1);
  if (!ParseDecimal(size, pair.size_bytes) ||
      pair.size_bytes > (kNoMaximum >> shift) ||
      !ParseDecimal(count, pair.count)) {
    return false;
  }
  pair.size_bytes <<= shift;
  rest.remove_prefix(item.size());
  if (rest.empty()) return true;
  rest.remove_prefix(1);
  return !rest.empty();  // nothing follows the last comma
}

OptionError ApplyOption(std::string_view name, std::string_view value,
                        ParsedOptions& options) {
  const OptionSpec* const spec = FindOption(name);
  if (spec == nullptr) return OptionError::kUnknown;
  OptionError error = OptionError::kNone;
  switch (spec->type) {
    case OptionType::kPath:
      error = ParsePath(value, options.values.*spec->path);
      break;
    case OptionType::kSizes:
      error = ParseSizes(*spec, value, options.values.*spec->path);
      break;
    case OptionType::kChoice:
      error = ParseChoice(*spec, value, options.values.*spec->number);
      break;
    case OptionType::kOrdinal:
      error = ParseOrdinal(*spec, value, options.values.*spec->number);
      break;
    case OptionType::kFlag:
    case OptionType::kNumber:
    case OptionType::kBytes:
    case OptionType::kBytesOrAll:
      error = ParseNumber(*spec, value, options.values.*spec->number);
      break;
  }
  if (error == OptionError::kNone) {
    options.origins[spec - kOptionTable.data()] = OptionOrigin::kEnvironment;
  }
  return error;
}

void ReadOptions(ParsedOptions& options) {
  VisitEnvironment("HAKMEM_", &VisitVariable, &options);
}

void WarnOfOtherVariants(const ParsedOptions& options,
                         std::string_view variant) {
  for (const OptionSpec& spec : kOptionTable) {
    if (OriginAt(spec, options) == OptionOrigin::kDefault ||
        HasOption(spec, variant)) {
      continue;
    }
    // "0" asks for nothing.
    if (spec.type == OptionType::kPath &&
        (options.values.*spec.path)[0] == '\0') {
      continue;
    }
    RawPrinter out;
    out.Text("hakmem: warning: ").Text(spec.name).Text(" needs the ");
    out.Text(spec.variants).Text(" variant; ignored");
    WriteWarning(out);
  }
}

namespace {

// A name that the table does not have is no constant.
consteval std::size_t IndexOf(std::string_view name) {
  std::size_t index = 0;
  while (name != kOptionTable[index].name) ++index;
  return index;
}

// An option that does nothing while the other asks for nothing.
struct Need {
  std::size_t option;
  std::size_t needed;
};
constexpr Need kNeeds[] = {
    {IndexOf("HAKMEM_STATS_AT_SIGNALS"), IndexOf("HAKMEM_STATS")},
    {IndexOf("HAKMEM_TRACE_SAMPLE"), IndexOf("HAKMEM_TRACE")},
    {IndexOf("HAKMEM_TRACE_STACKS"), IndexOf("HAKMEM_TRACE")},
    {IndexOf("HAKMEM_HEAP_PROFILE"), IndexOf("HAKMEM_PROFILE_BYTES")},
};

// The option that `spec` does nothing without, or null.
const OptionSpec* NeededBy(const OptionSpec& spec) {
  for (const Need& need : kNeeds) {
    if (&spec == &kOptionTable[need.option]) return &kOptionTable[need.needed];
  }
  return nullptr;
}

// For the options of kNeeds, whose least number is the one that asks for
// nothing.
bool AsksForSomething(const OptionSpec& spec, const Options& options) {
  if (spec.path != nullptr) return (options.*spec.path)[0] != '\0';
  return options.*spec.number > spec.minimum;
}

}  // namespace

void WarnOfMissingOptions(const ParsedOptions& options,
                          std::string_view variant) {
  for (const OptionSpec& spec : kOptionTable) {
    const OptionSpec* const needed = NeededBy(spec);
    if (needed == nullptr || !HasOption(spec, variant) ||
        !AsksForSomething(spec, options.values) ||
        AsksForSomething(*needed, options.values)) {
      continue;
    }
    RawPrinter out;
    out.Text("hakmem: warning: ").Text(spec.name).Text(" needs ");
    out.Text(needed->name).Text("; ignored");
    WriteWarning(out);
  }
}

namespace {

// Whether the option's value lets something pass that the hardened variant
// would find, or go on.
bool Weakens(const OptionSpec& spec, const Options& options) {
  const auto is = [&](std::uint64_t Options::* number, std::uint64_t value) {
    return spec.number == number && options.*number == value;
  };
  constexpr auto kLog = static_cast<std::uint64_t>(OnMisuse::kLog);
  // Nearly all guard pages go, and what was never granted is open.
  constexpr auto kOn = static_cast<std::uint64_t>(HugePages::kOn);
  return is(&Options::on_misuse, kLog) || is(&Options::huge_pages, kOn) ||
         is(&Options::check_kinds, 0) || is(&Options::check_sizes, 0) ||
         is(&Options::check_at_exit, 0) || is(&Options::guard_sample, 0) ||
         is(&Options::partitions, 1) ||
         (spec.number == &Options::clear_bytes &&
          options.clear_bytes != kClearAll);
}

}  // namespace

void WarnOfWeakened(const ParsedOptions& options, std::string_view variant) {
  if (variant != "hardened" || options.values.warn_weakened == 0) return;
  RawPrinter out;
  for (const OptionSpec& spec : kOptionTable) {
    if (OriginAt(spec, options) != OptionOrigin::kEnvironment ||
        !Weakens(spec, options.values)) {
      continue;
    }
    out.Text(out.text().empty() ? "hakmem: warning: weakened by " : ", ");
    out.Text(spec.name).Text("=");
    PrintOptionValue(spec, options.values, out);
  }
  if (out.text().empty()) return;
  out.Text(" (HAKMEM_WARN_WEAKENED=0: not a word of it)");
  WriteWarning(out);
}

OptionOrigin& OriginOf(std::uint64_t Options::* number,
                       ParsedOptions& options) {
  const OptionSpec* spec = kOptionTable.data();
  while (spec->number != number) ++spec;
  return options.origins[spec - kOptionTable.data()];
}

void SampleHardened(ParsedOptions& options, std::string_view variant) {
  if (variant == "hardened") {
    options.values.guard_sample = kHardenedGuardSample;
  }
}

void LeaveKindsAlone(ParsedOptions& options) {
  OptionOrigin& origin = OriginOf(&Options::check_kinds, options);
  if (origin != OptionOrigin::kDefault) return;
  options.values.check_kinds = 0;
  origin = OptionOrigin::kProgram;
}

void PrintConfig(const ParsedOptions& options, const char* variant,
                 void (*write)(std::string_view lines)) {
  // What an option's line has beside a path is shorter than this.
  constexpr std::size_t kMaxLineBytes = kMaxOptionPathBytes + 128;
  RawPrinter out;
  out.Text("hakmem ").Text(kVersion).Text(" ").Text(variant);
  out.Text(", ").Text(kBuildInfo.architecture);
  out.Text(", ").Text(kBuildInfo.compiler);
  out.Text(", ").Text(kBuildInfo.optimization);
  out.Text(kBuildInfo.address_sanitizer).Text(kBuildInfo.thread_sanitizer);
  out.Text(kBuildInfo.undefined_behavior_sanitizer);
  out.Text(kBuildInfo.link_time_optimization).Text(kBuildInfo.profile);
  out.Text(kBuildInfo.first_refill);
  out.Text(", revision ").Text(Revision()).Text("\n");
  for (const OptionSpec& spec : kOptionTable) {
    const bool is_hardened = std::string_view(variant) == "hardened";
    if (!HasOption(spec, variant) ||
        (spec.number == &Options::warn_weakened && !is_hardened)) {
      continue;
    }
    if (out.text().size() + kMaxLineBytes >= RawPrinter::kCapacityBytes) {
      write(out.text());
      out.Clear();
    }
    const std::size_t before = out.text().size();
    out.Text("  ").Text(spec.name).Text("=");
    PrintOptionWithUnit(spec, options.values, out);
    out.Plain(before);
    out.Text(kOriginWords[static_cast<unsigned>(OriginAt(spec, options))]);
  }
  write(out.text());
}

}  // namespace hakmem
