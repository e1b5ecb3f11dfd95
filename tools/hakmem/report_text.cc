#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/hakmem/advice.h"
#include "tools/hakmem/report.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::size_t kMaxLinesOfStack = 12;
constexpr std::size_t kIndent = 2;
constexpr std::size_t kHanging = 2;
constexpr std::size_t kCommandIndent = 6;

void AppendCommand(std::string_view command, std::string& text) {
  if (command.empty()) return;
  for (const std::string_view line : absl::StrSplit(command, '\n')) {
    absl::StrAppend(&text, std::string(kCommandIndent, ' '), line, "\n");
  }
}

std::string RemediesText(const std::vector<FilledRemedy>& remedies) {
  std::string text = "\n  What to do\n";
  for (const FilledRemedy& remedy : remedies) {
    absl::StrAppend(&text,
                    Wrapped(absl::StrCat("* ", remedy.where, ": ", remedy.text),
                            kTextColumns, kIndent, kHanging));
    AppendCommand(remedy.command, text);
  }
  return text;
}

std::string EvidenceText(const Report& report, const Cause& cause) {
  const std::vector<Fact> facts = Evidence(report.analysis, cause);
  std::size_t width = 0;
  for (const Fact& fact : facts) width = std::max(width, Columns(fact.label));
  std::string text = "\n  Evidence\n";
  for (const Fact& fact : facts) {
    absl::StrAppend(&text, "  ", Padded(fact.label, width + 2), fact.text,
                    "\n");
  }
  return text;
}

std::string SitesText(const Report& report, const Cause& cause,
                      std::size_t max_sites) {
  const std::vector<const CallSite*> sites = Analysis::RankedSites(cause);
  const std::size_t shown = std::min(sites.size(), max_sites);
  std::string text = "\n  Where\n";
  for (std::size_t i = 0; i < shown; ++i) {
    const CallSite& site = *sites[i];
    absl::StrAppend(&text, "  ", site.events, " x ", ForTerminal(site.call),
                    " of ", SizeWithSign(site.smallest));
    if (site.largest != site.smallest) {
      absl::StrAppend(&text, " to ", SizeWithSign(site.largest));
    }
    text += site.stack.empty() ? ", no call stack\n" : "\n";
    const std::vector<std::string> lines = StackLines(report, site);
    for (std::size_t n = 0; n < lines.size(); ++n) {
      if (n == kMaxLinesOfStack) {
        absl::StrAppend(&text, "      … ", lines.size() - n, " more\n");
        break;
      }
      absl::StrAppend(&text, "      ", lines[n], "\n");
    }
  }
  if (sites.size() > shown) {
    absl::StrAppend(&text, "  and ",
                    Count(sites.size() - shown, "other place", "other places"),
                    " (--sites=N shows more, --json and --html all)\n");
  }
  return text;
}

}  // namespace

std::string CauseAsText(const Report& report, const Cause& cause,
                        std::size_t number, std::size_t max_sites) {
  const Advice advice = AdviceFor(cause.example);
  std::string text =
      absl::StrCat("\n", number, ". ", advice.title, " [", CauseName(cause),
                   "]: ", Outcome(cause), "\n\n",
                   Wrapped(advice.sentence, kTextColumns, kIndent),
                   Wrapped(advice.background, kTextColumns, kIndent));
  if (!advice.remedies.empty()) text += RemediesText(advice.remedies);
  text += EvidenceText(report, cause);
  if (max_sites > 0 && !cause.sites.empty())
    text += SitesText(report, cause, max_sites);
  return text;
}

std::string ReportAsText(const Report& report, std::size_t max_sites) {
  std::string text = absl::StrCat(Headline(report), "\n");
  std::size_t number = 0;
  for (const std::size_t index : report.analysis.Ranked()) {
    text += CauseAsText(report, report.analysis.causes()[index], ++number,
                        max_sites);
  }
  const std::vector<std::string> remarks = Remarks(report);
  if (!remarks.empty()) text += "\nRemarks\n";
  for (const std::string& remark : remarks) {
    text += Wrapped(absl::StrCat("* ", remark), kTextColumns, 0, kHanging);
  }
  return text;
}

std::string FailureAsText(const Record& failure) {
  if (failure.kind == RecordKind::kKilled) {
    return absl::StrCat(failure.time, " ", ForTerminal(failure.program), "[",
                        failure.pid, "] killed by signal ", failure.signal,
                        "\n");
  }
  return absl::StrCat(
      failure.time, " ", ForTerminal(failure.program), "[", failure.pid, "] ",
      CallText(failure), " ", ForTerminal(failure.reason), "/",
      ForTerminal(failure.detail), " ", ForTerminal(failure.disposition), "\n");
}

}  // namespace hakmem::tools
