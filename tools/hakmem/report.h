// What explain has found, and the parts of it that the text, the page and the
// JSON all have.
#ifndef HAKMEM_TOOLS_HAKMEM_REPORT_H_
#define HAKMEM_TOOLS_HAKMEM_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/hakmem/analysis.h"
#include "tools/hakmem/failure_reader.h"
#include "tools/hakmem/failure_record.h"
#include "tools/hakmem/symbolizer.h"

namespace hakmem::tools {

// One file, or standard input.
struct Input {
  static constexpr std::size_t kMaxProblems = 20;

  std::string name;
  std::string error;  // why it could not be read; "" if it could
  std::uint64_t lines = 0;
  std::uint64_t records = 0;
  std::uint64_t other_lines = 0;
  std::uint64_t problem_count = 0;
  std::vector<Problem> problems;  // the first kMaxProblems

  // Whether all of it was read and understood.
  bool complete() const {
    return error.empty() && problem_count == 0 && records > 0;
  }
};

struct Report {
  const std::vector<Input>& inputs;
  const Analysis& analysis;
  const Symbolizer& symbols;
  bool of_process = false;  // of what it keeps, and not of traces
};

// A label and what there is to say: "refused", "mmap of 2.0 MiB: ENOMEM".
struct Fact {
  std::string label;
  std::string text;
};

// "12 calls failed, 3 more were served after a first failure in 2 processes."
std::string Headline(const Analysis& analysis);
// The same, where what could not be read may hold more.
std::string Headline(const Report& report);

// Whether every input is complete, and no failure was left out of it. A process
// of which no call has failed has no records.
bool IsComplete(const Report& report);

// "redis-server (process 123, release)".
std::string ProcessName(const Process& process);

// "15 calls failed, 2 more were served after a first failure".
std::string Outcome(std::uint64_t failed, std::uint64_t rescued);
// The same of a cause, which may have had processes killed instead.
std::string Outcome(const Cause& cause);

// "MapFail/rlimit_as".
std::string CauseName(const Cause& cause);

// "malloc(1048576)", "calloc(3, 8)", "aligned_alloc(64, 100)".
std::string CallText(const Record& failure);

// Who met the cause and when, and the evidence of its example.
std::vector<Fact> Evidence(const Analysis& analysis, const Cause& cause);

// The frames of a stack, with inlined functions, one line each:
// "main at program.c:12" or "libfoo.so.1+0x12f0".
std::vector<std::string> StackLines(const Report& report, const CallSite& site);

// What could not be read or is not in the trace, as sentences.
std::vector<std::string> Remarks(const Report& report);

// All on one page, for browsers.
std::string ReportAsHtml(const Report& report);
// One JSON object, with a newline at its end.
std::string ReportAsJson(const Report& report);

inline constexpr std::size_t kTextColumns = 80;
std::string ReportAsText(const Report& report, std::size_t max_sites);
// One cause, with its number in the report.
std::string CauseAsText(const Report& report, const Cause& cause,
                        std::size_t number, std::size_t max_sites);
// One failure on one line, for --follow.
std::string FailureAsText(const Record& failure);

// What the lines and marks mean; once for all timelines.
std::string TimelineLegendHtml();

// "" for a process of which nothing can be drawn.
std::string TimelineHtml(const Analysis& analysis, Process process);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_REPORT_H_
