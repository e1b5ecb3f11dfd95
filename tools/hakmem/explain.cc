#include <algorithm>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/hakmem/commands.h"
#include "tools/hakmem/end_signals.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/input_file.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/report.h"
#include "tools/hakmem/session.h"
#include "tools/hakmem/symbolizer.h"
#include "tools/hakmem/words.h"

ABSL_FLAG(bool, follow, false,
          "Goes on reading as the files grow, prints each failure when it "
          "comes and each new cause with its advice, and the whole report at "
          "the end: on Ctrl-C, or when all inputs are pipes that have ended. "
          "Of a folder it reads the files that are there at the start.");
ABSL_FLAG(bool, json, false,
          "Prints the report as one JSON object instead of text.");
ABSL_FLAG(std::string, html, "",
          "Also writes the report as one page to this file.");
ABSL_FLAG(unsigned, sites, 3,
          "How many call sites of each cause the text shows.");
ABSL_FLAG(std::string, symbolizer, "",
          "none: addresses stay without functions and lines.");
ABSL_FLAG(std::string, symbols, "",
          "A folder with programs, libraries or their debug information, for "
          "those that are not on this machine or are other builds here: "
          "FOLDER/.build-id/ab/cdef.debug, FOLDER/usr/bin/program or "
          "FOLDER/program.");

namespace hakmem::tools {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(200);

constexpr const char* kFlags[] = {"follow", "json",       "html",
                                  "sites",  "symbolizer", "symbols"};

// The whole of it: what was read and what is known of it.
class Explanation {
 public:
  Explanation()
      : session_([this](const Record& record, std::size_t cause) {
          if (live_) PrintLive(record, cause);
        }),
        symbols_(
            {absl::GetFlag(FLAGS_symbolizer), absl::GetFlag(FLAGS_symbols)}) {}

  // An input of which nothing is known but why.
  void Lack(const std::string& path, std::string_view why) {
    session_.Fail(session_.AddInput(path),
                  absl::StrCat("cannot be read: ", why));
  }

  void Read(const std::vector<std::string>& paths) {
    paths_ = paths;
    for (const std::string& path : paths) {
      InputFile file(path);
      const std::size_t input = session_.AddInput(NameOf(path));
      const absl::Status status =
          file.ReadAll([this, input](std::string_view bytes) {
            session_.Add(input, bytes);
          });
      if (!status.ok()) session_.Fail(input, std::string(status.message()));
      session_.Finish(input);
    }
  }

  void Follow(const std::vector<std::string>& paths) {
    live_ = true;
    AllowManyFiles();
    const std::size_t first = session_.inputs().size();
    std::vector<std::unique_ptr<InputFile>> files;
    for (const std::string& path : paths) {
      files.push_back(std::make_unique<InputFile>(path));
      session_.AddInput(NameOf(path));
    }
    const EndSignals signals({SIGINT, SIGTERM, SIGHUP});
    bool more = true;
    while (more && OutputError() == 0) {
      more = false;
      for (std::size_t i = 0; i < files.size(); ++i) {
        const std::size_t input = first + i;
        const absl::Status status =
            files[i]->ReadNew([this, input](std::string_view bytes) {
              session_.Add(input, bytes);
            });
        if (!status.ok()) session_.Fail(input, std::string(status.message()));
        if (status.ok() && !files[i]->ended()) more = true;
      }
      if (more && signals.ComeWithin(kPoll)) break;
    }
    for (std::size_t i = 0; i < files.size(); ++i) session_.Finish(first + i);
    PrintOut("\n");
  }

  // The exit status.
  int Conclude() {
    for (const Input& input : session_.inputs()) {
      if (!input.error.empty()) {
        Complain(absl::StrCat(ForTerminal(input.name), " ", input.error));
      }
    }
    for (const Cause& cause : session_.analysis().causes()) Symbolize(cause);
    const Report report = MakeReport();
    PrintOut(absl::GetFlag(FLAGS_json)
                 ? ReportAsJson(report)
                 : ReportAsText(report, absl::GetFlag(FLAGS_sites)) +
                       WhoHeldMemory());
    const std::string page = absl::GetFlag(FLAGS_html);
    const bool nothing_read =
        std::ranges::all_of(session_.inputs(), [](const Input& input) {
          return input.lines == 0 && !input.error.empty();
        });
    if (!page.empty() && !nothing_read &&
        !Succeeded(WriteFile(page, ReportAsHtml(report)))) {
      return kNotDone;
    }
    return session_.Complete() ? kDone : kNotDone;
  }

 private:
  static std::string NameOf(const std::string& path) {
    return path == "-" ? "standard input" : path;
  }

  Report MakeReport() const {
    return {session_.inputs(), session_.analysis(), symbols_};
  }

  // When a process was killed, as `hakmem run --keep-last` saw it.
  std::string WhoHeldMemory() const {
    constexpr std::size_t kPlaces = 5;
    std::string text;
    for (const std::string& path : paths_) {
      const std::string heap = absl::StrCat(path, kLastProfileEnding);
      std::error_code error;
      if (session_.analysis().killed() == 0 ||
          !std::filesystem::exists(heap, error)) {
        continue;
      }
      HeapModules modules;
      std::string lines;
      const absl::Status status = InputFile(heap).ReadAll(
          [&lines](std::string_view bytes) { lines += bytes; });
      const absl::StatusOr<HeapProfiles> profiles =
          ReadHeapProfiles(lines, modules);
      if (!status.ok() || !profiles.ok()) continue;
      HeapSymbols symbols(modules, {absl::GetFlag(FLAGS_symbolizer),
                                    absl::GetFlag(FLAGS_symbols)});
      symbols.Resolve(*profiles);
      const HeapProfiles shown = symbols.Shown(*profiles);
      absl::StrAppend(
          &text, "\nWho held memory within the last second before (",
          ForTerminal(heap), ")\n\n",
          HeapAsText({paths_, shown, symbols, HeapKind::kLive}, kPlaces));
    }
    return text;
  }

  void Symbolize(const Cause& cause) {
    std::vector<Frame> frames;
    for (const CallSite& site : cause.sites) {
      frames.insert(frames.end(), site.stack.begin(), site.stack.end());
    }
    symbols_.Resolve(session_.analysis().modules(), frames);
  }

  void PrintLive(const Record& record, std::size_t index) {
    PrintOut(FailureAsText(record));
    if (!explained_.insert(index).second) return;
    const Cause& cause = session_.analysis().causes()[index];
    Symbolize(cause);
    PrintOut(CauseAsText(MakeReport(), cause, index + 1,
                         absl::GetFlag(FLAGS_sites)));
    PrintOut("\n");
  }

  bool live_ = false;
  std::vector<std::string> paths_;
  Session session_;
  Symbolizer symbols_;
  std::set<std::size_t> explained_;  // causes that PrintLive has explained
};

int Explain(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    return WrongUsage(
        "name a trace, or - for standard input (hakmem help explain)");
  }
  if (absl::GetFlag(FLAGS_follow) && absl::GetFlag(FLAGS_json)) {
    return WrongUsage(
        "--follow writes for people; --json needs the end of the trace");
  }
  Explanation explanation;
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    const absl::StatusOr<std::vector<std::string>> files = FilesOf(argument);
    if (files.ok()) {
      paths.insert(paths.end(), files->begin(), files->end());
    } else {
      explanation.Lack(argument, files.status().message());
    }
  }
  paths = EachOnce(paths);
  if (absl::GetFlag(FLAGS_follow)) {
    explanation.Follow(paths);
  } else {
    explanation.Read(paths);
  }
  return explanation.Conclude();
}

}  // namespace

constexpr Command kExplainCommand = {
    "explain",
    "what failed allocations in a trace mean, and what to do",
    "[--FLAG…] FILE…",
    R"(
Reads the failure traces of one or many processes, which
HAKMEM_ACE_TRACE=PATH or `hakmem run` wrote, groups the failures by cause
and place, and says which limit was hit and what to do about it. FILE may
be a folder of traces, or - for standard input. Other programs' lines in
between, and damage, are passed over, counted and named.

Exit status: 0 when everything could be read, 1 when something could not
(what could is explained all the same), 2 for a wrong command line.)",
    kFlags,
    Explain,
};

}  // namespace hakmem::tools
