#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/hakmem/analysis.h"
#include "tools/hakmem/cgroup_kills.h"
#include "tools/hakmem/child.h"
#include "tools/hakmem/commands.h"
#include "tools/hakmem/elf_file.h"
#include "tools/hakmem/environment.h"
#include "tools/hakmem/last_profiles.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/run_output.h"
#include "tools/hakmem/run_reports.h"
#include "tools/hakmem/run_summary.h"
#include "tools/hakmem/session.h"
#include "tools/hakmem/subprocess.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

// Each --option of the command line, in its order.
std::vector<std::string>& GivenOptions() {
  static auto* const options = new std::vector<std::string>();
  return *options;
}

void KeepOption();

}  // namespace
}  // namespace hakmem::tools

ABSL_FLAG(std::string, variant, "release",
          "Which hakmem: release, tracing, hardened or debug.");
ABSL_FLAG(std::string, trace, "",
          "Where failures are written, a file to append to; %p in its name is "
          "the process. Default: a temporary file, which is kept if a call "
          "failed.");
ABSL_FLAG(std::string, limit, "",
          "The most memory for blocks, like 512M or 2G: sets "
          "HAKMEM_HEAP_LIMIT.");
ABSL_FLAG(std::string, option, "",
          "NAME=VALUE sets an option of hakmem's (docs/options.md); may be "
          "given many times. NAME may leave HAKMEM_ out.")
    .OnUpdate([] { hakmem::tools::KeepOption(); });
ABSL_FLAG(bool, keep_last, false,
          "Reads the heap profile each second, and keeps the last one if "
          "SIGKILL ends the program: who held memory then.");
ABSL_FLAG(std::string, library, "",
          "The library to load, if it is none of those that are found.");

namespace hakmem::tools {
namespace {

// What env, nice and timeout use, too.
constexpr int kOwnError = 125;
constexpr int kCannotRun = 126;
constexpr int kNoProgram = 127;

constexpr char kTraceVariable[] = "HAKMEM_ACE_TRACE";
constexpr char kStatisticsVariable[] = "HAKMEM_STATS";
constexpr char kReportVariable[] = "HAKMEM_REPORT";

// In the folder of a run that was not told where to write.
constexpr char kTraceFile[] = "failures.jsonl";
constexpr char kReportFile[] = "reports";

constexpr const char* kFlags[] = {"variant", "trace",     "limit",
                                  "option",  "keep_last", "library"};

void KeepOption() {
  const std::string value = absl::GetFlag(FLAGS_option);
  // Once at the start of the program, with the default.
  if (!value.empty()) GivenOptions().push_back(value);
}

void Say(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// A folder for one run, gone at its end unless somebody is to read it.
class Scratch {
 public:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  ~Scratch() {
    if (kept_) return;
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void Keep() { kept_ = true; }
  std::string File(std::string_view name) const {
    return absl::StrCat(path_, "/", name);
  }

 private:
  std::string path_;
  bool kept_ = false;
};

// Children may run in other folders.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

// The library by a name that LD_PRELOAD can hold: it separates by these.
absl::StatusOr<std::string> Loadable(const std::string& library,
                                     const Scratch& scratch) {
  constexpr std::string_view kSeparators = " :\t\n";
  if (library.find_first_of(kSeparators) == std::string::npos) return library;
  const std::string link = scratch.File("libhakmem.so");
  if (link.find_first_of(kSeparators) != std::string::npos ||
      ::symlink(library.c_str(), link.c_str()) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("LD_PRELOAD cannot hold the path ", ForTerminal(library)));
  }
  return link;
}

// As glibc's loader alone finds it, where that is known.
std::string ForGlibcAlone(const std::string& library) {
  void* const libc = ::dlopen("/$LIB/libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  const struct link_map* map = nullptr;
  if (libc == nullptr || ::dlinfo(libc, RTLD_DI_LINKMAP, &map) != 0) {
    return library;
  }
  const std::filesystem::path path(map->l_name);
  return NameForGlibc(library, path.parent_path().string());
}

absl::StatusOr<std::string> Library() {
  const std::string given = absl::GetFlag(FLAGS_library);
  if (given.empty()) return FindLibrary(absl::GetFlag(FLAGS_variant));
  if (::access(given.c_str(), R_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat("there is no library ", ForTerminal(given)));
  }
  if (DefinedFunctions(given, {"hakmem_version"}).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(ForTerminal(given),
                     " is no hakmem: it does not define hakmem_version"));
  }
  return Absolute(given);
}

// Whether loading our library would end the program: who names one of theirs
// knows better.
bool IsForOtherLibc(const std::string& program) {
  return absl::GetFlag(FLAGS_library).empty() && IsOfMusl(FindProgram(program));
}

// Sets the environment up; the outputs are where the failures and statistics
// will be.
absl::Status Prepare(const std::string& program, const Scratch& scratch,
                     Environment& environment, RunOutput& trace,
                     RunOutput& statistics) {
  absl::StatusOr<std::string> library = Library();
  if (library.ok()) library = Loadable(*library, scratch);
  if (!library.ok()) return library.status();
  // Who names one may name one that is for musl.
  if (absl::GetFlag(FLAGS_library).empty()) library = ForGlibcAlone(*library);
  if (!IsForOtherLibc(program)) environment.Preload(*library);
  std::vector<std::string> options = GivenOptions();
  const std::string limit = absl::GetFlag(FLAGS_limit);
  if (!limit.empty()) {
    options.push_back(absl::StrCat("HAKMEM_HEAP_LIMIT=", limit));
  }
  for (const std::string& option : options) {
    const absl::Status status = environment.SetOption(option);
    if (!status.ok()) return status;
  }
  const std::string given = absl::GetFlag(FLAGS_trace);
  if (!given.empty()) environment.Set(kTraceVariable, given);
  if (!environment.Has(kTraceVariable)) {
    environment.Set(kTraceVariable, scratch.File(kTraceFile));
  }
  if (!environment.Has(kStatisticsVariable)) {
    environment.Set(kStatisticsVariable, scratch.File("statistics.jsonl"));
  }
  // Who goes on after a misuse, wants to be told of it at once.
  if (!environment.Has(kReportVariable) &&
      environment.Get("HAKMEM_ON_MISUSE") != "log") {
    environment.Set(kReportVariable, scratch.File(kReportFile));
  }
  const std::pair<const char*, RunOutput*> outputs[] = {
      {kTraceVariable, &trace}, {kStatisticsVariable, &statistics}};
  for (const auto& [variable, output] : outputs) {
    const std::string value = environment.Get(variable);
    if (!IsPath(value)) continue;
    const std::string path = Absolute(value);
    environment.Set(variable, path);
    *output = RunOutput(path);
  }
  return absl::OkStatus();
}

// The process that has gone without an end: the largest, or the child itself.
Process KilledProcess(const Analysis& analysis, const std::string& program,
                      const ChildEnd& end) {
  Process killed;
  killed.pid = static_cast<std::uint64_t>(end.process);
  killed.program = program.substr(program.rfind('/') + 1);
  for (const Process& process : analysis.processes()) {
    if (process.ended || process.program.empty()) continue;
    if (process.peak_mapped >= killed.peak_mapped) killed = process;
  }
  return killed;
}

// Itself, or a shell's last command.
bool WasKilled(const ChildEnd& end) {
  constexpr int kShellKilled = 128 + SIGKILL;
  return end.signal == SIGKILL || end.exit_status == kShellKilled;
}

// If the kernel has killed for want of memory in a group of ours, that becomes
// a line of the trace, like a failure.
void AddKill(const std::vector<CgroupMemory>& before,
             const std::string& program, const ChildEnd& end,
             const RunOutput& trace, Session& session) {
  if (!WasKilled(end)) return;
  const std::optional<CgroupMemory> killer = FindKiller(before, ReadCgroups());
  if (!killer.has_value()) return;
  const Process killed = KilledProcess(session.analysis(), program, end);
  const std::string line = KilledLine(*killer, killed.pid, killed.program);
  const std::size_t input = session.analysis().processes().empty()
                                ? session.AddInput(trace.path())
                                : killed.source;
  session.Add(input, line);
  session.Finish(input);
  if (trace.path().empty()) return;
  std::ofstream file(
      absl::StrReplaceAll(trace.path(), {{"%p", absl::StrCat(killed.pid)}}),
      std::ios::binary | std::ios::app);
  file << line;
}

void SayDoubts(const std::string& program, const ChildEnd& end,
               const Session& session, const Peaks& peaks,
               const Environment& environment, const RunOutput& trace) {
  const auto say = [](const std::string& sentence) {
    if (!sentence.empty()) Say(absl::StrCat("hakmem: ", sentence, "\n"));
  };
  const std::string path = FindProgram(program);
  std::error_code error;
  std::set<std::string> others = end.programs;
  others.erase(std::filesystem::canonical(path, error).string());
  std::ranges::for_each(WhatOthersKeep(others), say);
  const std::string obstacle = WhyNotLoaded(path);
  if (!obstacle.empty() && (!IsOfMusl(path) || IsForOtherLibc(program))) {
    return say(obstacle);
  }
  std::optional<std::uint64_t> asked;
  const auto found = peaks.asked.find(static_cast<std::uint64_t>(end.process));
  if (found != peaks.asked.end()) asked = found->second;
  say(WhatWentElsewhere(path, asked));
  say(WhyFailuresMayBeMissing(session, environment.Get(kTraceVariable),
                              trace.path()));
}

// The variant that knows who allocated and freed a block.
std::string WhatToRunNext(const std::vector<std::string>& command) {
  constexpr std::string_view kBest = "debug";
  if (!absl::GetFlag(FLAGS_library).empty() ||
      absl::GetFlag(FLAGS_variant) == kBest) {
    return "";
  }
  std::string text = absl::StrCat(
      "hakmem: who allocated and who freed the block: hakmem run --variant=",
      kBest, " --");
  for (const std::string& word : command) {
    absl::StrAppend(&text, " ", ForShell(word));
  }
  return text + "\n";
}

void SayReports(const std::vector<std::string>& command,
                const Scratch& scratch) {
  std::ifstream file(scratch.File(kReportFile), std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (text.empty()) return;
  Say(CompletedReports(text, {}));
  if (!text.starts_with("hakmem: crash")) Say(WhatToRunNext(command));
}

// Beside the trace, where `hakmem explain` looks (explain.cc).
void KeepLast(const LastProfiles& last, const ChildEnd& end,
              const RunOutput& trace, Scratch& scratch) {
  const std::string lines = last.Lines();
  if (!WasKilled(end) || lines.empty()) return;
  const std::string path =
      absl::StrCat(trace.path().empty()
                       ? scratch.File(kTraceFile)
                       : absl::StrReplaceAll(
                             trace.path(), {{"%p", absl::StrCat(end.process)}}),
                   kLastProfileEnding);
  const absl::Status status = WriteFile(path, lines);
  if (!status.ok())
    return Say(absl::StrCat("hakmem: ", status.message(), "\n"));
  if (path.starts_with(scratch.File(""))) scratch.Keep();
  Say(absl::StrCat(
      "hakmem: killed; who held memory within the last second: hakmem heap ",
      ForShell(path), "\n"));
}

void Summarize(const std::string& program, const ChildEnd& end,
               const std::vector<CgroupMemory>& groups_before,
               const Environment& environment, const RunOutput& trace,
               const RunOutput& statistics, Scratch& scratch) {
  Session session;
  for (const auto& [path, content] : trace.NewContent()) {
    const std::size_t input = session.AddInput(path);
    session.Add(input, content);
    session.Finish(input);
  }
  AddKill(groups_before, program, end, trace, session);
  Peaks peaks;
  for (const auto& [path, content] : statistics.NewContent()) {
    AddPeaks(content, peaks);
  }
  const std::string summary = RunSummary(session, peaks, trace.path());
  Say(summary);
  if (!summary.empty() && trace.path() == scratch.File(kTraceFile)) {
    scratch.Keep();
  }
  SayDoubts(program, end, session, peaks, environment, trace);
}

int Run(const std::vector<std::string>& command) {
  const auto fail = [](std::string_view message, int status) {
    Say(absl::StrCat("hakmem run: ", message, "\n"));
    return status;
  };
  if (command.empty()) return fail("name a program to run", kOwnError);
  const absl::StatusOr<std::string> folder = MakeTemporaryFolder("hakmem-run");
  if (!folder.ok()) return fail(folder.status().message(), kOwnError);
  ChildEnd end;
  {
    Scratch scratch(*folder);
    Environment environment(environ);
    RunOutput trace;
    RunOutput statistics;
    const absl::Status ready =
        Prepare(command[0], scratch, environment, trace, statistics);
    if (!ready.ok()) return fail(ready.message(), kOwnError);
    const std::vector<CgroupMemory> groups = ReadCgroups();
    LastProfiles last(absl::GetFlag(FLAGS_keep_last) ? scratch.File("last.heap")
                                                     : std::string());
    const absl::StatusOr<ChildEnd> ended =
        RunChild(command, environment.Entries(),
                 [&last](int process) { last.Look(process); });
    if (!ended.ok()) {
      return fail(ended.status().message(),
                  absl::IsNotFound(ended.status()) ? kNoProgram : kCannotRun);
    }
    end = *ended;
    SayReports(command, scratch);
    KeepLast(last, end, trace, scratch);
    Summarize(command[0], end, groups, environment, trace, statistics, scratch);
  }
  EndLike(end);
}

}  // namespace

constexpr Command kRunCommand = {
    "run",
    "a program on hakmem, and afterwards what failed",
    "[--FLAG…] [--] PROGRAM [ARGUMENT…]",
    R"(
Runs PROGRAM with hakmem as its malloc, on this terminal. Signals are
passed on. Afterwards a few lines on standard error say which calls
failed in it and in its children, and why, or that the kernel killed it
because its control group was full, or what cannot be known; nothing if
all is well. A child that hakmem is not loaded into, or that brings a
malloc of its own, is named if it runs for longer than a moment. Reports of
misuse and crashes come before them, with names and lines.

Exit status: the program's; if a signal ended it, this command ends by
the same. 125 when the command line or the set-up is wrong, 126 when
PROGRAM cannot be run, 127 when there is none.)",
    kFlags,
    Run,
    nullptr,
    FlagsEnd::kAtFirstArgument,
    kOwnError,
};

}  // namespace hakmem::tools
