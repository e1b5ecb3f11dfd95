#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/hakmem/advice.h"
#include "tools/hakmem/html_page.h"
#include "tools/hakmem/report.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::size_t kMaxTimelines = 12;
constexpr std::size_t kMaxProcessRows = 200;

std::string CausesTable(const Report& report) {
  HtmlTable table("Causes", {"<cause", "<name", "failed", "served later",
                             "processes", "=first", "=last"});
  std::size_t number = 0;
  for (const std::size_t index : report.analysis.Ranked()) {
    const Cause& cause = report.analysis.causes()[index];
    ++number;
    table.Row({absl::StrCat("<a href=\"#cause-", number, "\">",
                            ForHtml(AdviceFor(cause.example).title), "</a>"),
               ForHtml(CauseName(cause)), absl::StrCat(cause.failed),
               absl::StrCat(cause.rescued),
               absl::StrCat(cause.processes.size()), ForHtml(cause.first_time),
               ForHtml(cause.last_time)});
  }
  return table.Html();
}

std::string RemediesHtml(const Advice& advice) {
  std::string html = "<h3>What to do</h3>\n<ul class=\"remedies\">\n";
  for (const FilledRemedy& remedy : advice.remedies) {
    absl::StrAppend(&html, "<li><strong>", ForHtml(remedy.where), ":</strong> ",
                    ForHtml(remedy.text));
    if (!remedy.command.empty()) {
      // Not ForHtml alone: it would write line breaks as \x0a.
      const std::vector<std::string_view> lines =
          absl::StrSplit(remedy.command, '\n');
      const auto add = [](std::string* to, std::string_view line) {
        *to += ForHtml(line);
      };
      absl::StrAppend(&html, "<pre>", absl::StrJoin(lines, "\n", add),
                      "</pre>");
    }
    html += "</li>\n";
  }
  return html + "</ul>\n";
}

std::string EvidenceHtml(const Report& report, const Cause& cause) {
  std::string html = "<h3>Evidence</h3>\n<dl>";
  for (const Fact& fact : Evidence(report.analysis, cause)) {
    absl::StrAppend(&html, "<dt>", ForHtml(fact.label), "</dt><dd>",
                    ForHtml(fact.text), "</dd>\n");
  }
  return html + "</dl>\n";
}

std::string SitesHtml(const Report& report, const Cause& cause) {
  std::string html = "<h3>Where</h3>\n";
  for (const CallSite* ranked : Analysis::RankedSites(cause)) {
    const CallSite& site = *ranked;
    std::string sizes = SizeWithSign(site.smallest);
    if (site.largest != site.smallest) {
      absl::StrAppend(&sizes, " to ", SizeWithSign(site.largest));
    }
    absl::StrAppend(&html, "<p>", site.events, " × <code>", ForHtml(site.call),
                    "</code> of ", ForHtml(sizes),
                    site.stack.empty() ? ", no call stack</p>\n" : "</p>\n");
    if (site.stack.empty()) continue;
    html += "<ol class=\"stack\">";
    for (const std::string& line : StackLines(report, site)) {
      absl::StrAppend(&html, "<li><code>", ForHtml(line), "</code></li>\n");
    }
    html += "</ol>\n";
  }
  return html;
}

std::string CauseHtml(const Report& report, const Cause& cause,
                      std::size_t number) {
  const Advice advice = AdviceFor(cause.example);
  std::string html = absl::StrCat(
      "<section id=\"cause-", number, "\">\n<h2>", number, ". ",
      ForHtml(advice.title), "</h2>\n",
      HtmlParagraph("muted",
                    absl::StrCat(CauseName(cause), ": ", Outcome(cause))),
      HtmlParagraph("sentence", advice.sentence),
      HtmlParagraph("", advice.background));
  if (!advice.remedies.empty()) html += RemediesHtml(advice);
  html += EvidenceHtml(report, cause);
  if (!cause.sites.empty()) html += SitesHtml(report, cause);
  return html + "</section>\n";
}

// The processes, those with most failures first, then the largest.
std::vector<const Process*> RankedProcesses(const Analysis& analysis) {
  std::vector<const Process*> ranked;
  for (const Process& process : analysis.processes()) {
    ranked.push_back(&process);
  }
  // They lie in the order in which they were met, which decides ties.
  std::sort(ranked.begin(), ranked.end(),
            [](const Process* a, const Process* b) {
              const std::uint64_t of_a = a->failed + a->rescued;
              const std::uint64_t of_b = b->failed + b->rescued;
              if (of_a != of_b) return of_a > of_b;
              if (a->peak_mapped != b->peak_mapped) {
                return a->peak_mapped > b->peak_mapped;
              }
              return std::less<>()(a, b);
            });
  return ranked;
}

std::string TimelinesHtml(const Analysis& analysis) {
  std::string html;
  // Of processes in which nothing happened, beside others.
  std::string folded;
  std::size_t drawn = 0;
  std::size_t quiet = 0;
  for (const Process* process : RankedProcesses(analysis)) {
    const std::string timeline = TimelineHtml(analysis, *process);
    if (timeline.empty()) continue;
    if (++drawn > kMaxTimelines) continue;
    const bool is_quiet = process->marks.empty() && drawn > 1;
    quiet += is_quiet ? 1 : 0;
    (is_quiet ? folded : html) += timeline;
  }
  if (drawn == 0) return "";
  if (quiet > 0) {
    absl::StrAppend(&html, "<details class=\"quiet\"><summary>",
                    Count(quiet, "process", "processes"),
                    " without a failed call</summary>", folded, "</details>\n");
  }
  if (drawn > kMaxTimelines) {
    html += HtmlParagraph(
        "muted",
        absl::StrCat("Not drawn: ", drawn - kMaxTimelines, " more processes."));
  }
  return absl::StrCat("<section>\n<h2>Memory over time</h2>\n",
                      TimelineLegendHtml(), html, "</section>\n");
}

// A process that was killed early has written nothing of its memory.
std::string MostBytes(const Process& process, std::uint64_t bytes) {
  return process.memory.empty() ? "not known" : Bytes(bytes);
}

std::string ProcessesHtml(const Analysis& analysis) {
  HtmlTable table("Processes", {"<program", "process", "=variant", "failed",
                                "served later", "not in the trace",
                                "most granted", "most mapped", "=ended"});
  std::size_t rows = 0;
  for (const Process* process : RankedProcesses(analysis)) {
    if (++rows > kMaxProcessRows) break;
    table.Row({ForHtml(process->program), absl::StrCat(process->pid),
               ForHtml(process->variant), absl::StrCat(process->failed),
               absl::StrCat(process->rescued), absl::StrCat(process->dropped),
               MostBytes(*process, process->peak_granted),
               MostBytes(*process, process->peak_mapped),
               process->ended ? "yes" : "no"});
  }
  std::string html = table.Html();
  if (analysis.processes().size() > kMaxProcessRows) {
    html += HtmlParagraph(
        "muted", absl::StrCat(analysis.processes().size() - kMaxProcessRows,
                              " more processes."));
  }
  return absl::StrCat("<section>\n<h2>Processes</h2>\n", html, "</section>\n");
}

std::string InputsHtml(const Report& report) {
  HtmlTable table("What was read",
                  {"<file", "lines", "records", "others' lines", "unreadable"});
  for (const Input& input : report.inputs) {
    table.Row({ForHtml(input.name), absl::StrCat(input.lines),
               absl::StrCat(input.records), absl::StrCat(input.other_lines),
               absl::StrCat(input.problem_count)});
  }
  return absl::StrCat("<section>\n<h2>What was read</h2>\n", table.Html(),
                      HtmlList(Remarks(report)), "</section>\n");
}

}  // namespace

std::string ReportAsHtml(const Report& report) {
  const std::string headline = Headline(report);
  std::string html = absl::StrCat(PageHead({.title = "Failed allocations"}),
                                  "<body>\n<header>\n");
  html += HtmlParagraph("kicker", "hakmem explain: failed allocations");
  absl::StrAppend(&html, "<h1>", ForHtml(headline), "</h1>\n");
  if (!report.analysis.causes().empty()) html += CausesTable(report);
  html += "</header>\n<main>\n";
  html += TimelinesHtml(report.analysis);
  std::size_t number = 0;
  for (const std::size_t index : report.analysis.Ranked()) {
    html += CauseHtml(report, report.analysis.causes()[index], ++number);
  }
  if (!report.analysis.processes().empty()) {
    html += ProcessesHtml(report.analysis);
  }
  return absl::StrCat(html, InputsHtml(report), "</main>\n</body>\n</html>\n");
}

}  // namespace hakmem::tools
