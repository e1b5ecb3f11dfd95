#include "tools/hakmem/report_html.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/hakmem/advice.h"
#include "tools/hakmem/html_timeline.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::size_t kMaxTimelines = 12;
constexpr std::size_t kMaxProcessRows = 200;

std::string Paragraph(std::string_view style, std::string_view text) {
  return absl::StrCat("<p", style.empty() ? "" : " class=\"", style,
                      style.empty() ? ">" : "\">", ForHtml(text), "</p>\n");
}

// A table whose rows become lists where it is narrow. The cells are HTML.
class Table {
 public:
  // Columns whose title begins with '<' hold words, those with '=' words that
  // are not broken, the others numbers.
  Table(std::string_view name, const std::vector<std::string_view>& titles) {
    html_ = absl::StrCat(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
        name, "\"><table class=\"rows\"><thead><tr>");
    for (std::string_view title : titles) {
      styles_.push_back(title.starts_with('<')   ? " class=\"words\""
                        : title.starts_with('=') ? " class=\"words whole\""
                                                 : "");
      if (!styles_.back().empty()) title.remove_prefix(1);
      titles_.push_back(title);
      absl::StrAppend(&html_, "<th scope=\"col\"", styles_.back(), ">", title,
                      "</th>");
    }
    html_ += "</tr></thead><tbody>\n";
  }

  void Row(const std::vector<std::string>& cells) {
    html_ += "<tr>";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string_view tag = i == 0 ? "th scope=\"row\"" : "td";
      absl::StrAppend(&html_, "<", tag, styles_[i], " data-title=\"",
                      titles_[i], "\"><span>", cells[i], "</span></",
                      tag.substr(0, 2), ">");
    }
    html_ += "</tr>\n";
  }

  std::string Html() const { return html_ + "</tbody></table></div>\n"; }

 private:
  std::string html_;
  std::vector<std::string_view> titles_;
  std::vector<std::string_view> styles_;
};

std::string CausesTable(const Report& report) {
  Table table("Causes", {"<cause", "<name", "failed", "served later",
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
      html += "<pre>";
      std::string_view rest = remedy.command;
      while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        absl::StrAppend(&html, ForHtml(rest.substr(0, end)), "\n");
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
      html.back() = '<';
      html += "/pre>";
    }
    html += "</li>\n";
  }
  return html + "</ul>\n";
}

std::string EvidenceHtml(const Report& report, const Cause& cause) {
  std::string html = "<h3>Evidence</h3>\n<dl>";
  std::vector<Fact> facts = {{"in", Who(report.analysis, cause)},
                             {"time", When(cause)}};
  for (Fact& fact : Evidence(cause.example)) facts.push_back(std::move(fact));
  for (const Fact& fact : facts) {
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
      Paragraph("muted", absl::StrCat(CauseName(cause), ": ", Outcome(cause))),
      Paragraph("sentence", advice.sentence), Paragraph("", advice.background));
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
    html += Paragraph(
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
  Table table("Processes",
              {"<program", "process", "=variant", "failed", "served later",
               "not in the trace", "most granted", "most mapped", "=ended"});
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
    html += Paragraph(
        "muted", absl::StrCat(analysis.processes().size() - kMaxProcessRows,
                              " more processes."));
  }
  return absl::StrCat("<section>\n<h2>Processes</h2>\n", html, "</section>\n");
}

std::string InputsHtml(const Report& report) {
  Table table("What was read",
              {"<file", "lines", "records", "others' lines", "unreadable"});
  for (const Input& input : report.inputs) {
    table.Row({ForHtml(input.name), absl::StrCat(input.lines),
               absl::StrCat(input.records), absl::StrCat(input.other_lines),
               absl::StrCat(input.problem_count)});
  }
  std::string html =
      absl::StrCat("<section>\n<h2>What was read</h2>\n", table.Html());
  const std::vector<std::string> remarks = Remarks(report);
  if (!remarks.empty()) html += "<ul>\n";
  for (const std::string& remark : remarks) {
    absl::StrAppend(&html, "<li>", ForHtml(remark), "</li>\n");
  }
  if (!remarks.empty()) html += "</ul>\n";
  return html + "</section>\n";
}

}  // namespace

std::string ReportAsHtml(const Report& report) {
  const std::string headline = Headline(report);
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
      "'none'; style-src 'unsafe-inline'; img-src data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>Failed allocations</title>\n"
      "<style>",
      kPageStyle, "</style>\n</head>\n<body>\n<header>\n");
  html += Paragraph("kicker", "hakmem explain: failed allocations");
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
