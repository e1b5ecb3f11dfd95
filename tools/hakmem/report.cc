#include "tools/hakmem/report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/hakmem/advice.h"
#include "tools/hakmem/text_table.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::size_t kMaxProcessesNamed = 5;

// "1.0 GiB (1073741824)": one to read, one to copy.
std::string AmountAndNumber(std::string_view name, std::uint64_t amount) {
  const std::string shown = LimitAmount(name, amount);
  const std::string number = absl::StrCat(amount);
  if (shown == number || shown == "unlimited") return shown;
  return absl::StrCat(shown, " (", number, ")");
}

std::string LimitText(const Limit& limit) {
  std::vector<std::string> parts;
  if (limit.value) {
    parts.push_back(AmountAndNumber(limit.name, *limit.value));
  }
  if (limit.use) {
    parts.push_back(
        absl::StrCat("in use ", AmountAndNumber(limit.name, *limit.use)));
  }
  if (limit.needed) {
    parts.push_back(
        absl::StrCat("needed ", AmountAndNumber(limit.name, *limit.needed)));
  }
  std::string text = absl::StrJoin(parts, ", ");
  if (!limit.source.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "from ",
                    ForTerminal(limit.source));
  }
  return text;
}

std::string MemoryText(const Memory& memory) {
  std::string text =
      memory.live ? absl::StrCat("live ", Bytes(*memory.live), ", ") : "";
  absl::StrAppend(&text, "granted ", Bytes(memory.granted), ", cached ",
                  Bytes(memory.cached), ", mapped ", Bytes(memory.mapped));
  if (memory.peak_mapped) {
    absl::StrAppend(&text, " (at most ", Bytes(*memory.peak_mapped), ")");
  }
  if (memory.metadata) {
    absl::StrAppend(&text, ", hakmem's tables ", Bytes(*memory.metadata));
  }
  if (memory.largest_free) {
    absl::StrAppend(&text, ", longest free piece ",
                    Bytes(*memory.largest_free));
  }
  return text;
}

std::string Where(const Analysis& analysis, const Frame& frame) {
  if (frame.module >= analysis.modules().size()) {
    return absl::StrFormat("0x%x", frame.offset);
  }
  const std::string& path = analysis.modules()[frame.module].path;
  return absl::StrFormat("%s+0x%x", ForTerminal(FileName(path)), frame.offset);
}

std::string LineText(const SourceLine& line, const std::string& where) {
  const std::string function =
      line.function.empty() ? "?" : Shortened(ForTerminal(line.function));
  return absl::StrCat(function, line.place.empty() ? " in " : " at ",
                      line.place.empty() ? where : ForTerminal(line.place));
}

void AddInputRemarks(const Input& input, std::vector<std::string>& remarks) {
  const std::string name = ForTerminal(input.name);
  if (!input.error.empty()) {
    remarks.push_back(absl::StrCat(name, ": ", ForTerminal(input.error)));
    return;
  }
  for (const Problem& problem : input.problems) {
    remarks.push_back(absl::StrCat(name, ":", problem.line, ": the line ",
                                   ForTerminal(problem.what)));
  }
  if (input.problem_count > input.problems.size()) {
    remarks.push_back(absl::StrCat(name, ": ",
                                   input.problem_count - input.problems.size(),
                                   " more lines could not be read"));
  }
  if (input.other_lines > 0) {
    remarks.push_back(absl::StrCat(
        name, ": ",
        Count(input.other_lines, "line is not hakmem's and was passed over",
              "lines are not hakmem's and were passed over")));
  }
  if (input.records == 0) {
    remarks.push_back(absl::StrCat(
        name,
        ": there is nothing of hakmem's in it (a trace is written by "
        "HAKMEM_ACE_TRACE=PATH or hakmem run)"));
  }
}

}  // namespace

std::string Outcome(std::uint64_t failed, std::uint64_t rescued) {
  std::string text;
  if (failed > 0 || rescued == 0) {
    text = absl::StrCat(Count(failed, "call", "calls"), " failed");
  }
  if (rescued > 0 && text.empty()) {
    text = absl::StrCat(Count(rescued, "call was", "calls were"),
                        " served after a first failure");
  } else if (rescued > 0) {
    absl::StrAppend(&text, ", ", rescued, " more ",
                    rescued == 1 ? "was" : "were",
                    " served after a first failure");
  }
  return text;
}

std::string Outcome(const Cause& cause) {
  if (cause.killed == 0) return Outcome(cause.failed, cause.rescued);
  return Count(cause.killed, "process was killed", "processes were killed");
}

std::string Headline(const Analysis& analysis) {
  std::string killed;
  if (analysis.killed() > 0) {
    killed =
        absl::StrCat("The kernel killed ",
                     Count(analysis.killed(), "process", "processes"), ". ");
  }
  if (analysis.failed() + analysis.rescued() == 0) {
    return absl::StrCat(
        killed, "No call failed in ",
        Count(analysis.processes().size(), "process", "processes"), ".");
  }
  std::uint64_t processes = 0;
  for (const Process& process : analysis.processes()) {
    processes += process.failed + process.rescued > 0 ? 1 : 0;
  }
  return absl::StrCat(killed, Outcome(analysis.failed(), analysis.rescued()),
                      " in ", Count(processes, "process", "processes"), ".");
}

bool IsComplete(const Report& report) {
  return report.analysis.dropped() == 0 &&
         (report.of_process ||
          std::ranges::all_of(report.inputs, &Input::complete));
}

std::string Headline(const Report& report) {
  const Analysis& analysis = report.analysis;
  if (!analysis.causes().empty() || IsComplete(report)) {
    return Headline(analysis);
  }
  if (analysis.processes().empty()) {
    return "Nothing could be read, so nothing is known of failed calls.";
  }
  return "No call failed in what could be read; the remarks say what could "
         "not.";
}

std::string ProcessName(const Process& process) {
  std::string text = absl::StrCat(
      process.program.empty() ? "a program" : ForTerminal(process.program),
      " (process ", process.pid);
  if (!process.variant.empty()) {
    absl::StrAppend(&text, ", ", ForTerminal(process.variant));
  }
  return absl::StrCat(text, ")");
}

std::string CauseName(const Cause& cause) {
  return absl::StrCat(ForTerminal(cause.reason), "/",
                      ForTerminal(cause.detail));
}

std::string CallText(const Record& failure) {
  std::string arguments;
  if (failure.count) {
    absl::StrAppend(&arguments, *failure.count, ", ");
  } else if (failure.alignment.value_or(0) > 16) {
    absl::StrAppend(&arguments, "alignment ", *failure.alignment, ", ");
  }
  return absl::StrCat(ForTerminal(failure.call), "(", arguments, failure.size,
                      ")");
}

namespace {

// The program and its processes that met the cause.
std::string Who(const Analysis& analysis, const Cause& cause) {
  std::vector<std::string> names;
  for (const std::size_t index : cause.processes) {
    if (names.size() == kMaxProcessesNamed) break;
    names.push_back(ProcessName(analysis.processes()[index]));
  }
  std::string text = absl::StrJoin(names, ", ");
  if (cause.processes.size() > names.size()) {
    absl::StrAppend(&text, " and ", cause.processes.size() - names.size(),
                    " more");
  }
  return text;
}

std::string When(const Cause& cause) {
  if (cause.first_time == cause.last_time) return cause.first_time;
  return absl::StrCat(cause.first_time, " to ", cause.last_time);
}

Fact CallFact(const Record& failure) {
  if (failure.kind == RecordKind::kKilled) {
    return {"killed", absl::StrCat("by signal ", failure.signal)};
  }
  std::string call = CallText(failure);
  if (!failure.route.empty()) {
    absl::StrAppend(&call, ", route ", ForTerminal(failure.route));
  }
  absl::StrAppend(&call, ", tried ", Count(failure.attempts, "time", "times"),
                  ", thread ", failure.tid);
  if (!failure.thread.empty()) {
    absl::StrAppend(&call, " \"", ForTerminal(failure.thread), "\"");
  }
  return {"call", call};
}

}  // namespace

std::vector<Fact> Evidence(const Analysis& analysis, const Cause& cause) {
  const Record& failure = cause.example;
  std::vector<Fact> facts = {
      {"in", Who(analysis, cause)}, {"time", When(cause)}, CallFact(failure)};
  if (failure.refused) {
    facts.push_back(
        {"refused", absl::StrCat(ForTerminal(failure.refused->call), " of ",
                                 AmountAndNumber("", failure.refused->bytes),
                                 ": ", ForTerminal(failure.refused->error))});
  }
  if (failure.limit) {
    facts.push_back(
        {ForTerminal(failure.limit->name), LimitText(*failure.limit)});
  }
  if (failure.memory) facts.push_back({"hakmem", MemoryText(*failure.memory)});
  for (const Limit& limit : failure.limits) {
    const bool shown = failure.limit && failure.limit->name == limit.name &&
                       failure.limit->source == limit.source;
    if (!shown) facts.push_back({ForTerminal(limit.name), LimitText(limit)});
  }
  return facts;
}

std::vector<std::string> StackLines(const Report& report,
                                    const CallSite& site) {
  std::vector<std::string> lines;
  for (const Frame& frame : site.stack) {
    const std::string where = Where(report.analysis, frame);
    const std::vector<SourceLine>& found = report.symbols.Lines(frame);
    if (found.empty()) lines.push_back(where);
    for (const SourceLine& line : found) {
      lines.push_back(LineText(line, where));
    }
  }
  return lines;
}

std::vector<std::string> Remarks(const Report& report) {
  std::vector<std::string> remarks;
  for (const Input& input : report.inputs) AddInputRemarks(input, remarks);
  const std::uint64_t dropped = report.analysis.dropped();
  if (dropped > 0) {
    remarks.push_back(absl::StrCat(
        Count(dropped, "failure is", "failures are"),
        report.of_process
            ? " counted but no longer kept: the process keeps the last 256"
            : " counted but not in the trace, which takes 100 lines a second"));
  }
  for (const std::string& note : report.symbols.notes()) {
    remarks.push_back(note);
  }
  return remarks;
}

}  // namespace hakmem::tools
