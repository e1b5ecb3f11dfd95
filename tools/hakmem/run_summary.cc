#include "tools/hakmem/run_summary.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/hakmem/advice.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::size_t kMaxCauses = 5;
constexpr std::size_t kColumns = 80;

using Json = nlohmann::json;

void AddServed(const Json& json, Peaks& peaks) {
  const auto pid = json.find("pid");
  const auto routes = json.find("routes");
  if (pid == json.end() || !pid->is_number_unsigned()) return;
  if (routes == json.end() || !routes->is_object()) return;
  std::uint64_t served = 0;
  for (const Json& route : *routes) {
    if (!route.is_object()) return;
    const auto allocations = route.find("allocations");
    if (allocations == route.end() || !allocations->is_number_unsigned()) {
      return;
    }
    served += allocations->get<std::uint64_t>();
  }
  peaks.served[pid->get<std::uint64_t>()] = served;
}

// What stands for the trace on a command line: where each process has a file,
// a pattern.
std::string TraceForShell(std::string_view trace) {
  std::string words;
  std::string_view process;
  for (const std::string_view part : absl::StrSplit(trace, "%p")) {
    words += process;
    if (!part.empty()) words += ForShell(part);
    process = "[0-9]*";
  }
  return words;
}

}  // namespace

void AddPeaks(std::string_view statistics, Peaks& peaks) {
  for (const std::string_view line : absl::StrSplit(statistics, '\n')) {
    const Json json = Json::parse(line.begin(), line.end(), nullptr,
                                  /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    AddServed(json, peaks);
    const auto mapped = json.find("peak_mapped_bytes");
    const auto program = json.find("program");
    if (mapped == json.end() || !mapped->is_number_unsigned()) continue;
    if (program == json.end() || !program->is_string()) continue;
    ++peaks.processes;
    if (mapped->get<std::uint64_t>() >= peaks.mapped) {
      peaks.mapped = mapped->get<std::uint64_t>();
      peaks.mapped_by = program->get<std::string>();
    }
  }
}

std::string RunSummary(const Session& session, const Peaks& peaks,
                       std::string_view trace) {
  const Analysis& analysis = session.analysis();
  if (analysis.causes().empty()) return "";
  std::string text = absl::StrCat("hakmem: ", Headline(analysis), "\n");
  const std::vector<std::size_t> ranked = analysis.Ranked();
  for (std::size_t i = 0; i < std::min(ranked.size(), kMaxCauses); ++i) {
    const Cause& cause = analysis.causes()[ranked[i]];
    text += Wrapped(absl::StrCat("* ", CauseName(cause), ", ", Outcome(cause),
                                 ": ", AdviceFor(cause.example).sentence),
                    kColumns, 2, 2);
  }
  if (ranked.size() > kMaxCauses) {
    absl::StrAppend(
        &text, "  * and ",
        Count(ranked.size() - kMaxCauses, "other cause", "other causes"), "\n");
  }
  std::uint64_t mapped = peaks.mapped;
  std::string by = peaks.mapped_by;
  for (const Process& process : analysis.processes()) {
    if (process.peak_mapped > mapped) {
      mapped = process.peak_mapped;
      by = process.program;
    }
  }
  if (mapped > 0) {
    absl::StrAppend(&text, "  at most ", Bytes(mapped), " mapped for blocks (",
                    ForTerminal(by), ")\n");
  }
  absl::StrAppend(&text, "  what to do: hakmem explain ", TraceForShell(trace),
                  "\n");
  return text;
}

}  // namespace hakmem::tools
