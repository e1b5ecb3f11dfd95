// The library's work when the process starts and when it ends.

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "allocator/base/json_text.h"
#include "allocator/base/line_end.h"
#include "allocator/base/raw_print.h"
#include "allocator/config/options.h"
#include "allocator/core/live_count.h"
#include "allocator/frontend/control.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/exit_output.h"
#include "allocator/frontend/failure_handler.h"
#include "allocator/frontend/misuse_reports.h"
#include "allocator/frontend/process_hooks.h"
#include "allocator/frontend/slow_work.h"
#include "allocator/frontend/startup_options.h"
#include "allocator/options/option_parser.h"
#include "allocator/platform/libc_functions.h"
#include "allocator/platform/single_threaded.h"
#include "allocator/process/process.h"
#include "allocator/process/signals.h"
#include "allocator/process/thread_identity.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/stacks/startup_modules.h"
#include "allocator/statistics/statistics.h"

namespace hakmem {
namespace {

// The first and last priority open to programs: before other constructors of
// this object, and after its other destructors. Where it is preloaded, those of
// the libraries that the program needs run before the former, and after the
// latter.
constexpr int kOutermostPriority = 101;

// Longer than the stack of a thread that calls exit should be asked for.
// Written and read at the end of the process alone.
constinit char g_statistics[kStatisticsJsonBytes] = "";
// The process whose statistics are or were written: the child of a fork has its
// own. Written and read by whoever comes to their end.
constinit std::atomic<int> g_told{0};

// HAKMEM_PREWARM, whose list was checked when it was read.
void Prewarm() {
  std::string_view rest = CurrentOptions().prewarm;
  for (SizeAndCount pair = {}; !rest.empty();) {
    if (!TakeSizeAndCount(rest, pair)) return;
    const std::size_t ready = ProductPrewarm(pair.size_bytes, pair.count);
    if (ready == pair.count) continue;
    RawPrinter out;
    out.Text("hakmem: warning: HAKMEM_PREWARM: ").Decimal(ready);
    out.Text(" of ").Decimal(pair.count).Text(" blocks of ");
    out.Decimal(pair.size_bytes).Text(" bytes are ready");
    WriteWarning(out);
  }
}

// HAKMEM_STATS. Also in a handler of a signal, on a thread that may hold any
// lock.
void WriteStatistics(int signal) {
  const char* const value = CurrentOptions().stats;
  if (value[0] == '\0') return;
  const int process_id = ProcessId();
  if (g_told.exchange(process_id, std::memory_order_relaxed) == process_id) {
    return;
  }
  JsonText out(g_statistics, sizeof(g_statistics));
  const LiveCount live = CountInUnits(ProductAce());
  PrintStatisticsJson(ProductStatistics(), live.classes,
                      {.process_id = process_id,
                       .program = ProgramName(),
                       .unix_seconds = WallClockNs() / 1'000'000'000,
                       .signal = signal},
                      out);
  const int fd = OpenExitOutput("HAKMEM_STATS", value, FileReaders::kAll);
  if (fd < 0) return;
  // In one write: other processes may append to the same file.
  CloseExitOutput("HAKMEM_STATS", value, fd, TryWriteFd(fd, out.text()));
}

void AtSignal(int signal) {
  NoteEnd();
  WriteProfileAtEnd(CurrentOptions().heap_profile, signal);
  if (CurrentOptions().stats_at_signals != 0) WriteStatistics(signal);
}

// CPython sets up its own handler of SIGINT only where there is none.
void InstallEndHookIfAsked() {
  const Options& options = CurrentOptions();
  const bool statistics =
      options.stats[0] != '\0' && options.stats_at_signals != 0;
  const bool profile = options.heap_profile[0] != '\0' && ProductProfile().on();
  if (!statistics && !profile) return;
  InstallEndHook(&AtSignal, /*with_interrupt=*/statistics);
}

bool WritesToStderrAtExit(const Options& options) {
  return std::strcmp(options.stats, "1") == 0 ||
         std::strcmp(options.heap_profile, "1") == 0 ||
         std::strcmp(options.leaks, "1") == 0;
}

// What else would have come, before a report of the check ends the process:
// also what the program has written and libc has not. Another thread may keep a
// stream for good, as it waits for input.
void FinishEarly() {
  WriteStatistics(0);
  if (IsSingleThreaded()) {
    std::fflush(nullptr);
  } else if (ftrylockfile(stdout) == 0) {
    fflush_unlocked(stdout);
    funlockfile(stdout);
  }
}

// HAKMEM_CHECK_AT_EXIT. Children of forks are many, and end soon.
void CheckAtExit() {
  constexpr std::uint64_t kInChildren = 2;
  const std::uint64_t check = CurrentOptions().check_at_exit;
  if (check < kInChildren && (check == 0 || IsForked())) return;
  // A program that goes on after a misuse has the damage for good.
  if (MisuseCount() != 0) return;
  SetLastCall(&FinishEarly);
  ProductCheckAtExit();
}

// Normally the first allocation has done it; this is for a process whose first
// allocation is made by a thread beside one that forks, and for one that makes
// none.
__attribute__((constructor(kOutermostPriority))) void AtStart() {
  FindLibcFunctions(&FindInLibc);
  if (NotedProcessId() == 0) NoteProcess();  // else start_filter.cc has it
  InstallThreadExitHookOnce();
  InstallForkHooksOnce();
  NoteStartupModules();
  ProductStart();
  if (WritesToStderrAtExit(CurrentOptions())) KeepStderr();
  WantBackgroundThread();
  WantControl();
  Prewarm();
  InstallEndHookIfAsked();
  ProductOpenRecords();
  StartFailureReports();
  StartCrashReports();
  // Last: it passes on to the handlers that it finds.
  StartGuardReports();
}

// HAKMEM_LEAKS, HAKMEM_HEAP_PROFILE, HAKMEM_STATS. A destructor, because those
// run after every atexit handler, C++ objects of libraries among them, in
// whichever thread calls exit.
__attribute__((destructor(kOutermostPriority))) void AtExit() {
  NoteEnd();
  ProductFinishRecords();
  EndFailureReports();
  WriteProfileAtEnd(CurrentOptions().heap_profile, 0);
  CheckAtExit();
  WriteStatistics(0);
}

}  // namespace
}  // namespace hakmem
