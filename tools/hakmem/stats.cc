#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/json_text.h"
#include "allocator/base/raw_print.h"
#include "allocator/config/version.h"
#include "allocator/options/option_parser.h"
#include "allocator/statistics/statistics.h"
#include "tools/hakmem/commands.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/process_image.h"
#include "tools/hakmem/process_names.h"
#include "tools/hakmem/process_statistics.h"
#include "tools/hakmem/resident_parts.h"
#include "tools/hakmem/words.h"

ABSL_FLAG(
    bool, openmetrics, false,
    "Prints them as OpenMetrics, for Prometheus and what reads the same.");

ABSL_FLAG(bool, pages, false,
          "Where the resident memory is, with --json and --openmetrics, too: "
          "the text has it of each running process.");

namespace hakmem::tools {
namespace {

// An option with which a process, or the one of a core file, has started.
struct ProcessOption {
  std::string name;
  std::string value;   // with its unit
  std::string origin;  // default, environment or program
};

constexpr std::string_view kOrigins[] = {"default", "environment", "program"};

// What a damaged process may have in place of the words of a choice, or of a
// path's end, is no such thing.
bool IsSound(const OptionSpec& spec, const ParsedOptions& parsed,
             OptionOrigin origin) {
  if (static_cast<std::size_t>(origin) >= std::size(kOrigins)) return false;
  if (spec.path == nullptr) {
    return spec.type != OptionType::kChoice ||
           parsed.values.*spec.number <= spec.maximum;
  }
  return std::memchr(parsed.values.*spec.path, '\0', kMaxOptionPathBytes) !=
         nullptr;
}

// Those that the variant has, of a hakmem of this version. Empty: it is another
// build.
std::vector<ProcessOption> ReadOptionsOf(const ProcessImage& image,
                                         std::string_view variant) {
  std::vector<ProcessOption> options;
  const OptionTables own;
  const auto tables = std::make_unique<OptionTables>();
  if (!image.ReadTables("hakmem_options", "", *tables).ok() ||
      std::memcmp(tables->magic, own.magic, sizeof(own.magic)) != 0 ||
      tables->table_bytes != own.table_bytes) {
    return options;
  }
  for (std::size_t i = 0; i < kOptionCount; ++i) {
    const OptionSpec& spec = kOptionTable[i];
    const OptionOrigin origin = tables->parsed.origins[i];
    if (!HasOption(spec, variant) || !IsSound(spec, tables->parsed, origin)) {
      continue;
    }
    RawPrinter value;
    PrintOptionWithUnit(spec, tables->parsed.values, value);
    options.push_back(
        {.name = spec.name,
         .value = std::string(value.text()),
         .origin = std::string(kOrigins[static_cast<std::size_t>(origin)])});
  }
  return options;
}

constexpr const char* kFlags[] = {"json", "openmetrics", "pages"};

// What is told, and what only if it was asked for.
struct Told {
  const ProcessStatistics& process;
  const Statistics& statistics;
  std::optional<ResidentParts> parts;
  std::vector<ProcessOption> options;
};

// Statistics has these numbers, too.
bool IsOfStatistics(const ResidentRow& row) {
  return row.value == &ResidentParts::cached_bytes ||
         row.value == &ResidentParts::resident_bytes;
}

std::string AsText(const Told& told) {
  const ProcessStatistics& process = told.process;
  std::string text =
      absl::StrCat(ForTerminal(process.program), "[", process.pid, "]");
  if (process.resident_bytes) {
    absl::StrAppend(&text, ", ", Bytes(*process.resident_bytes), " resident");
  }
  absl::StrAppend(&text, "\n");
  PrintStatisticsText(told.statistics, {}, AppendTo(text));
  for (const ProcessOption& option : told.options) {
    if (option.origin == "default") continue;
    absl::StrAppend(&text, "  ", option.name, "=", ForTerminal(option.value),
                    " (", option.origin, ")\n");
  }
  if (!told.parts) return text;
  absl::StrAppend(&text, "where the resident memory is\n");
  for (const ResidentRow& row : ResidentRows()) {
    const std::uint64_t bytes = *told.parts.*row.value;
    if (bytes == 0) continue;
    const std::string_view sign = row.sign < 0 ? "-" : "";
    absl::StrAppend(
        &text, absl::StrFormat("  %-24s%20s bytes, %s%s\n", row.words,
                               absl::StrCat(sign, bytes), sign, Bytes(bytes)));
  }
  return text;
}

std::string AsJson(const Told& told) {
  using Json = nlohmann::ordered_json;
  const ProcessStatistics& process = told.process;
  const auto buffer = std::make_unique<char[]>(kStatisticsJsonBytes);
  JsonText line(buffer.get(), kStatisticsJsonBytes);
  PrintStatisticsJson(told.statistics, {},
                      {.process_id = static_cast<int>(process.pid),
                       .program = process.program.c_str()},
                      line);
  Json json = {{"schema", "hakmem-statistics"},
               {"version", 1},
               {"hakmem", process.version}};
  json.update(Json::parse(line.text()));
  // They are counted by a walk that only the process itself makes.
  json.erase("classes");
  if (process.resident_bytes) json["resident_bytes"] = *process.resident_bytes;
  for (const ProcessOption& option : told.options) {
    json["options"][option.name] = {{"value", option.value},
                                    {"origin", option.origin}};
  }
  if (told.parts) {
    for (const ResidentRow& row : ResidentRows()) {
      json[row.key] = *told.parts.*row.value;
    }
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A program does not write these itself.
void AddMetric(const ProcessStatistics& process, std::string_view key,
               std::string_view help, std::uint64_t value, std::string& text) {
  char buffer[256];
  JsonText program(buffer, sizeof(buffer));
  program.Label(process.program.substr(0, kMaxMetricsProgramBytes));
  const std::string name = absl::StrCat("hakmem_", key);
  absl::StrAppend(&text, "# TYPE ", name, " gauge\n# UNIT ", name,
                  " bytes\n# HELP ", name, " ", help, "\n", name, "{pid=\"",
                  process.pid, "\",program=", program.text(), "} ", value,
                  "\n");
}

std::string AsOpenMetrics(const Told& told) {
  constexpr std::string_view kEnd = "# EOF\n";
  const ProcessStatistics& process = told.process;
  std::string text;
  PrintStatisticsOpenMetrics(
      told.statistics,
      {.id = process.pid,
       .program = process.program,
       .resident_bytes = process.resident_bytes.value_or(0)},
      AppendTo(text));
  if (told.parts) {
    text.resize(text.size() - kEnd.size());
    for (const ResidentRow& row : ResidentRows()) {
      if (IsOfStatistics(row)) continue;
      AddMetric(process, row.key, row.words, *told.parts.*row.value, text);
    }
    absl::StrAppend(&text, kEnd);
  }
  return text;
}

int Stats(const std::vector<std::string>& arguments) {
  const bool json = absl::GetFlag(FLAGS_json);
  const bool openmetrics = absl::GetFlag(FLAGS_openmetrics);
  if (arguments.size() != 1 || (json && openmetrics)) {
    return WrongUsage(
        "name one process, or one core file; --json and --openmetrics are two "
        "forms of the same (hakmem help stats)");
  }
  const absl::StatusOr<ProcessImage> image = ProcessImage::Open(arguments[0]);
  if (!image.ok()) return NotDone(ForTerminal(image.status().message()));
  absl::StatusOr<ProcessStatistics> process = ReadStatistics(*image);
  if (!process.ok()) return NotDone(ForTerminal(process.status().message()));
  Statistics statistics = process->statistics;
  statistics.variant = process->variant.c_str();
  statistics.version = process->version.c_str();
  Told told = {.process = *process,
               .statistics = statistics,
               .parts = {},
               .options = {}};
  if (process->version == kVersion) {
    told.options = ReadOptionsOf(*image, process->variant);
  }
  const bool pages = absl::GetFlag(FLAGS_pages);
  if (pages || !(json || openmetrics || image->is_core())) {
    const absl::StatusOr<ResidentParts> parts = CountResident(*image, *process);
    if (pages && !parts.ok()) {
      return NotDone(ForTerminal(parts.status().message()));
    }
    if (parts.ok()) {
      told.parts = *parts;
      process->resident_bytes = parts->resident_bytes;
    }
  }
  PrintOut(json          ? AsJson(told)
           : openmetrics ? AsOpenMetrics(told)
                         : AsText(told));
  return 0;
}

}  // namespace

constexpr Command kStatsCommand = {
    "stats",
    "what a running process or a core file has allocated, and where it is",
    "[--FLAG…] PID|NAME|CORE",
    R"(
Reads the statistics out of the memory of a process that runs on hakmem, or
of its core file: what was served, what is mapped, in use and cached, calls
of the kernel, waits for locks, options that are set, where the resident
memory is. The process needs no option for it, and is not stopped; it takes
the process's user, or root.
docs/statistics.md explains each line.

Exit status: 0 when the statistics could be read, 1 when not, 2 for a wrong
command line.)",
    kFlags,
    Stats,
    OneProcessNamed,
};

}  // namespace hakmem::tools
