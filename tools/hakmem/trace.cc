#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/hakmem/commands.h"
#include "tools/hakmem/input_file.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/trace_analysis.h"
#include "tools/hakmem/trace_blocks.h"
#include "tools/hakmem/trace_events.h"
#include "tools/hakmem/trace_replay.h"
#include "tools/hakmem/trace_report.h"
#include "tools/hakmem/words.h"

ABSL_FLAG(
    std::optional<unsigned>, top, std::nullopt,
    "How many rows of a kind the text shows. Default: 10 threads and call "
    "sites of a trace, 20 places and functions of a heap profile.");
ABSL_FLAG(std::string, chrome, "",
          "Also writes memory, rates and failures over time to this file, for "
          "chrome://tracing or ui.perfetto.dev.");
ABSL_FLAG(std::string, pprof, "",
          "Also writes a profile for pprof to this file: allocated and live "
          "blocks and bytes by call site.");
ABSL_FLAG(std::string, replay, "",
          "Also writes the calls to this file, for the replayer of "
          "benchmarks/traces.");

ABSL_FLAG(std::uint64_t, replay_events,
          std::numeric_limits<std::uint64_t>::max(),
          "How many calls --replay writes, the first.");

namespace hakmem::tools {
namespace {

// The bytes of a call trace, read and not mapped: who traces may begin the file
// anew meanwhile, and a mapping loses what is cut off its file.
class TraceInput {
 public:
  // "-" is standard input.
  explicit TraceInput(const std::string& path) {
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(path, unknown);
    if (!unknown) read_.reserve(size);
    status_ = InputFile(path).ReadAll(
        [this](std::string_view bytes) { read_ += bytes; });
  }

  // Of the reading; what was read before an error is there.
  const absl::Status& status() const { return status_; }

  std::span<const std::uint8_t> bytes() const {
    return {reinterpret_cast<const std::uint8_t*>(read_.data()), read_.size()};
  }

 private:
  absl::Status status_;
  std::string read_;
};

constexpr unsigned kDefaultRows = 10;
// Sites beyond are shown by addresses.
constexpr std::size_t kMaxSymbolizedSites = 10000;

constexpr const char* kFlags[] = {"html",          "json",       "top",
                                  "chrome",        "pprof",      "replay",
                                  "replay_events", "symbolizer", "symbols"};

// The stacks that will be shown.
std::set<StackId> ShownStacks(const TraceAnalysis& analysis) {
  std::set<StackId> shown;
  for (const TraceSite& site : SitesByBytes(analysis)) {
    if (shown.size() == kMaxSymbolizedSites) break;
    shown.insert(site.stack);
  }
  for (const auto& [key, tally] : analysis.failures()) {
    shown.insert(tally.stack);
  }
  return shown;
}

bool WriteReplay(const std::string& path, TraceReplay& replay,
                 const TraceFacts& facts) {
  const TraceReplay::File file =
      replay.Finish(absl::GetFlag(FLAGS_replay_events));
  if (!Succeeded(WriteFile(path, file.bytes))) return false;
  Complain(absl::StrCat(
      path, ": ", Count(file.events, "call", "calls"), "; ", file.left_out,
      " that do not fit together left out",
      facts.sample > 1 ? "; the trace is a sample, and so is its replay" : ""));
  return true;
}

// A file with all that is made of it.
class TraceFile {
 public:
  static absl::StatusOr<std::unique_ptr<TraceFile>> Read(
      const std::string& path, bool replay) {
    auto input = std::make_unique<TraceInput>(path);
    if (!input->status().ok()) return input->status();
    absl::StatusOr<TraceBlocks> blocks = ReadTraceBlocks(input->bytes());
    if (!blocks.ok()) return blocks.status();
    return std::make_unique<TraceFile>(path, std::move(input),
                                       *std::move(blocks), replay);
  }

  TraceFile(const std::string& path, std::unique_ptr<TraceInput> input,
            TraceBlocks blocks, bool replay)
      : path_(path == "-" ? "standard input" : path),
        input_(std::move(input)),
        blocks_(std::move(blocks)),
        analysis_(blocks_.facts()),
        symbols_(blocks_, {absl::GetFlag(FLAGS_symbolizer),
                           absl::GetFlag(FLAGS_symbols)}) {
    if (replay) replay_.emplace(blocks_.facts());
    ReadTraceEvents(blocks_, stacks_, [this](const CallEvent& event) {
      analysis_.Add(event);
      if (replay_.has_value()) replay_->Add(event);
    });
    symbols_.Resolve(stacks_, ShownStacks(analysis_));
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  TraceReport report() const {
    return {.path = path_,
            .blocks = blocks_,
            .stacks = stacks_,
            .analysis = analysis_,
            .symbols = symbols_};
  }
  std::optional<TraceReplay>& replay() { return replay_; }

 private:
  const std::string path_;
  const std::unique_ptr<TraceInput> input_;
  TraceBlocks blocks_;  // of the input's bytes
  TraceStacks stacks_;
  TraceAnalysis analysis_;
  TraceSymbols symbols_;
  std::optional<TraceReplay> replay_;
};

void Print(const TraceReport& report, bool is_first) {
  if (absl::GetFlag(FLAGS_json)) return PrintOut(TraceAsJson(report));
  if (!is_first) PrintOut("\n");
  PrintOut(
      TraceAsText(report, absl::GetFlag(FLAGS_top).value_or(kDefaultRows)));
}

// What is written of one trace alone.
bool WriteForOthers(TraceFile& file) {
  const TraceReport report = file.report();
  bool written = true;
  const auto write = [&](const std::string& to, auto make) {
    if (!to.empty() && !Succeeded(WriteFile(to, make(report)))) written = false;
  };
  write(absl::GetFlag(FLAGS_chrome), TraceAsChromeJson);
  write(absl::GetFlag(FLAGS_pprof), TraceAsPprof);
  if (file.replay().has_value() &&
      !WriteReplay(absl::GetFlag(FLAGS_replay), *file.replay(),
                   report.blocks.facts())) {
    written = false;
  }
  return written;
}

int Show(const std::vector<std::string>& paths) {
  const bool replay = !absl::GetFlag(FLAGS_replay).empty();
  const std::string page = absl::GetFlag(FLAGS_html);
  bool all_good = true;
  // Kept for the page.
  std::vector<std::unique_ptr<TraceFile>> files;
  std::vector<TraceReport> reports;
  for (const std::string& path : paths) {
    absl::StatusOr<std::unique_ptr<TraceFile>> file =
        TraceFile::Read(path, replay);
    if (!file.ok()) {
      Complain(absl::StrCat(ForTerminal(path), ": ", file.status().message()));
      all_good = false;
      continue;
    }
    const TraceReport report = (*file)->report();
    Print(report, path == paths.front());
    if (!WriteForOthers(**file)) all_good = false;
    if (report.blocks.damage.bytes() > 0) all_good = false;
    if (page.empty()) continue;
    reports.push_back(report);
    files.push_back(*std::move(file));
  }
  if (!reports.empty() && !Succeeded(WriteFile(page, TracesAsPage(reports)))) {
    all_good = false;
  }
  return all_good ? kDone : kNotDone;
}

int Trace(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return WrongUsage("name a trace (hakmem help trace)");
  const bool for_others = !absl::GetFlag(FLAGS_chrome).empty() ||
                          !absl::GetFlag(FLAGS_pprof).empty() ||
                          !absl::GetFlag(FLAGS_replay).empty();
  if (arguments.size() > 1 && for_others) {
    return WrongUsage(
        "--chrome, --pprof and --replay take one trace (hakmem help trace)");
  }
  return Show(EachOnce(arguments));
}

}  // namespace

constexpr Command kTraceCommand = {
    "trace",
    "what a program asked of malloc: rates, live memory, call sites",
    "[--FLAG…] FILE…",
    R"(
Reads the traces of processes, which HAKMEM_TRACE=FILE wrote with the
tracing variant, one a file, and shows allocation rate and live memory
over time, by size class, route, thread, call and call site (with
HAKMEM_TRACE_STACKS=1), lifetimes, releases by other threads, failures
and detours. Damage is passed over, counted and named. FILE may be -:
standard input.

Exit status: 0 when everything could be read and written, 1 when not
(what could be read is shown all the same), 2 for a wrong command line.)",
    kFlags,
    Trace,
};

}  // namespace hakmem::tools
