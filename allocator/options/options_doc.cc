#include "allocator/options/options_doc.h"

#include <cstdint>
#include <string>

#include "allocator/config/options.h"
#include "allocator/options/option_parser.h"

namespace hakmem {

namespace {

// A number as its user would write it.
std::string Number(const OptionSpec& spec, std::uint64_t number) {
  if (spec.type != OptionType::kBytes && spec.type != OptionType::kBytesOrAll) {
    return std::to_string(number);
  }
  if (number == kNoMaximum) {
    return spec.type == OptionType::kBytes ? "unlimited" : "all";
  }
  std::string suffix;
  for (const char* next = "KMGT"; *next != '\0'; ++next) {
    if (number == 0 || number % 1024 != 0) break;
    number /= 1024;
    suffix = *next;
  }
  return std::to_string(number) + suffix;
}

std::string Value(const OptionRow& row, const OptionSpec& spec) {
  std::string unit = row.unit;
  switch (spec.type) {
    case OptionType::kFlag:
      return "0 or 1";
    case OptionType::kPath:
      if (!unit.empty()) return unit;
      return "0: none; 1: standard error; else the path of a file to append "
             "to, in which %p is the process";
    case OptionType::kSizes:
      return "`" + unit + "`";
    case OptionType::kChoice: {
      std::string words;
      for (std::uint64_t i = 0; i <= spec.maximum; ++i) {
        words += i == 0 ? "" : i < spec.maximum ? ", " : " or ";
        words += ChoiceWord(spec, i);
      }
      return words;
    }
    case OptionType::kOrdinal:
      return "0: none; n or n+";
    case OptionType::kBytesOrAll:
      return "all, or bytes, at least " + Number(spec, spec.minimum);
    case OptionType::kNumber:
    case OptionType::kBytes:
      break;
  }
  const std::string before = unit.empty() ? "" : unit + ", ";
  const std::string minimum = Number(spec, spec.minimum);
  if (spec.maximum == kNoMaximum) return before + "at least " + minimum;
  return before + minimum + " to " + Number(spec, spec.maximum);
}

std::string Default(const OptionSpec& spec) {
  const Options defaults;
  if (spec.type == OptionType::kChoice) {
    return std::string(ChoiceWord(spec, defaults.*spec.number));
  }
  if (spec.path == nullptr) {
    return Number(spec, defaults.*spec.number);
  }
  const std::string path = defaults.*spec.path;
  return path.empty() ? "none" : path;
}

}  // namespace

std::string OptionsDoc() {
  std::string doc =
      "<!-- Made from allocator/config/options.h; do not edit. Anew:\n"
      "     bazel run //allocator/options:options_doc > docs/options.md -->\n"
      "# What does each option do?\n"
      "\n"
      "hakmem reads these environment variables once, when a process makes its "
      "first\n"
      "allocation. A value that cannot be taken, and a name beginning with "
      "`HAKMEM_` that is\n"
      "not listed here, are reported on standard error; the default holds "
      "then. "
      "Programs that\n"
      "run with raised privileges (set-user-ID) ignore them all.\n"
      "\n"
      "Bytes may be written with a suffix: K, M, G or T, for powers of 1024. "
      "`HAKMEM_SHOW_CONFIG=1`\n"
      "shows what holds in a process. An option that the variant does not "
      "have, or that does\n"
      "nothing without another, is reported.\n"
      "\n"
      "A file is not opened through a symbolic link. One that holds addresses "
      "is created for its\n"
      "owner alone; `HAKMEM_TRACE` replaces nothing but an earlier trace of "
      "the "
      "same user.\n"
      "A relative path is one from where the program was started, wherever "
      "it goes; an empty one is\n"
      "none. A named pipe is waited for until somebody reads it, except by "
      "`HAKMEM_REPORT`, and\n"
      "by a trace whose file is opened again in the middle of the program.\n"
      "\n"
      "Standard error is what it was when the process started. Where the "
      "program has put another\n"
      "file in its place, nothing is written there: what is written at exit "
      "goes to where standard\n"
      "error led, and reports to the system's log.\n"
      "\n"
      "| variable | value | default | meaning |\n"
      "|---|---|---|---|\n";
  for (const OptionRow& row : kOptionRows) {
    const OptionSpec spec(row);
    doc += "| `" + std::string(row.name) + "` | " + Value(row, spec) + " | " +
           Default(spec) + " | " + row.sentence + " |\n";
  }
  return doc;
}

}  // namespace hakmem
