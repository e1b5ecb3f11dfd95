#include "tools/hakmem/trace.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/hakmem/output_file.h"
#include "tools/hakmem/standard_output.h"
#include "tools/hakmem/trace_analysis.h"
#include "tools/hakmem/trace_blocks.h"
#include "tools/hakmem/trace_events.h"
#include "tools/hakmem/trace_replay.h"
#include "tools/hakmem/trace_report.h"
#include "tools/hakmem/trace_symbols.h"
#include "tools/hakmem/words.h"

// Of explain, with the same meaning.
ABSL_DECLARE_FLAG(bool, json);
ABSL_DECLARE_FLAG(std::string, symbolizer);
ABSL_DECLARE_FLAG(std::string, symbols);

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

constexpr int kAllGood = 0;
constexpr int kNotAllRead = 1;
constexpr int kWrongUsage = 2;
constexpr unsigned kDefaultRows = 10;
// Sites beyond are shown by addresses.
constexpr std::size_t kMaxSymbolizedSites = 10000;

constexpr const char* kFlags[] = {"json",       "top",    "chrome",
                                  "pprof",      "replay", "replay_events",
                                  "symbolizer", "symbols"};

void Complain(std::string_view text) {
  const std::string line = absl::StrCat("hakmem trace: ", text, "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// A file's bytes, mapped.
class FileBytes {
 public:
  explicit FileBytes(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      status_ = absl::ErrnoToStatus(errno, "cannot be opened");
      return;
    }
    const absl::Cleanup close = [fd] { ::close(fd); };
    struct stat facts;
    if (::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
      status_ = absl::InvalidArgumentError("is not a file");
      return;
    }
    size_ = static_cast<std::size_t>(facts.st_size);
    if (size_ == 0) return;
    void* const bytes = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) {
      status_ = absl::ErrnoToStatus(errno, "cannot be mapped");
      return;
    }
    bytes_ = static_cast<const std::uint8_t*>(bytes);
  }
  ~FileBytes() {
    if (bytes_ != nullptr) {
      ::munmap(const_cast<std::uint8_t*>(bytes_), size_);
    }
  }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  const absl::Status& status() const { return status_; }
  std::span<const std::uint8_t> bytes() const {
    return {bytes_, bytes_ == nullptr ? 0 : size_};
  }

 private:
  absl::Status status_;
  const std::uint8_t* bytes_ = nullptr;
  std::size_t size_ = 0;
};

bool Write(const std::string& path, const std::string& bytes) {
  const absl::Status status = WriteFile(path, bytes);
  if (!status.ok()) Complain(status.message());
  return status.ok();
}

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
  if (!Write(path, file.bytes)) return false;
  Complain(absl::StrCat(
      path, ": ", Count(file.events, "call", "calls"), "; ", file.left_out,
      " that do not fit together left out",
      facts.sample > 1 ? "; the trace is a sample, and so is its replay" : ""));
  return true;
}

int Trace(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1) {
    Complain("name one trace (hakmem help trace)");
    return kWrongUsage;
  }
  const std::string& path = arguments.front();
  const FileBytes file(path);
  absl::StatusOr<TraceBlocks> blocks =
      file.status().ok() ? ReadTraceBlocks(file.bytes())
                         : absl::StatusOr<TraceBlocks>(file.status());
  if (!blocks.ok()) {
    Complain(absl::StrCat(ForTerminal(path), ": ", blocks.status().message()));
    return kNotAllRead;
  }
  const std::string replay_path = absl::GetFlag(FLAGS_replay);
  TraceStacks stacks;
  TraceAnalysis analysis(blocks->facts());
  std::optional<TraceReplay> replay;
  if (!replay_path.empty()) replay.emplace(blocks->facts());
  ReadTraceEvents(*blocks, stacks, [&](const CallEvent& event) {
    analysis.Add(event);
    if (replay.has_value()) replay->Add(event);
  });
  TraceSymbols symbols(
      *blocks, {absl::GetFlag(FLAGS_symbolizer), absl::GetFlag(FLAGS_symbols)});
  symbols.Resolve(stacks, ShownStacks(analysis));
  const TraceReport report = {.path = path,
                              .blocks = *blocks,
                              .stacks = stacks,
                              .analysis = analysis,
                              .symbols = symbols};
  const std::string text =
      absl::GetFlag(FLAGS_json)
          ? TraceAsJson(report)
          : TraceAsText(report,
                        absl::GetFlag(FLAGS_top).value_or(kDefaultRows));
  PrintOut(text);
  bool written = true;
  const auto write = [&](const std::string& to, auto make) {
    if (!to.empty() && !Write(to, make(report))) written = false;
  };
  write(absl::GetFlag(FLAGS_chrome), TraceAsChromeJson);
  write(absl::GetFlag(FLAGS_pprof), TraceAsPprof);
  if (replay.has_value() &&
      !WriteReplay(replay_path, *replay, blocks->facts())) {
    written = false;
  }
  return written && blocks->damage.bytes() == 0 ? kAllGood : kNotAllRead;
}

}  // namespace

constexpr Command kTraceCommand = {
    "trace",
    "what a program asked of malloc: rates, live memory, call sites",
    "[--FLAG…] FILE",
    "Reads the trace of one process, which HAKMEM_TRACE=FILE wrote with the\n"
    "tracing variant, and shows allocation rate and live memory over time, by\n"
    "size class, route, thread, call and call site (HAKMEM_TRACE_STACKS=1),\n"
    "lifetimes, releases by other threads, failures and detours. Damage is\n"
    "passed over, counted and named.\n"
    "\n"
    "Exit status: 0 when everything could be read and written, 1 when not\n"
    "(what could be read is shown all the same), 2 for a wrong command line.",
    kFlags,
    FlagsEnd::kNever,
    kWrongUsage,
    Trace,
};

}  // namespace hakmem::tools
