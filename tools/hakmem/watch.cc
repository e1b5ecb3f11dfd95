#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/hakmem/commands.h"
#include "tools/hakmem/end_signals.h"
#include "tools/hakmem/heap_input.h"
#include "tools/hakmem/heap_process.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/process_image.h"
#include "tools/hakmem/process_names.h"
#include "tools/hakmem/words.h"

ABSL_FLAG(absl::Duration, every, absl::Minutes(1),
          "How long from one profile to the next.");
ABSL_FLAG(unsigned, keep, 100,
          "So many profiles of the process are kept: the first, and the "
          "newest.");

namespace hakmem::tools {
namespace {

constexpr const char* kFlags[] = {"every", "keep"};

// The error is a sentence.
absl::StatusOr<std::uint64_t> ReadSnapshot(const std::string& pid,
                                           std::string& lines) {
  HeapModules modules;
  const absl::StatusOr<HeapProfiles> profiles = ReadHeapOfProcess(pid, modules);
  if (!profiles.ok()) return profiles.status();
  lines = HeapAsLines(*profiles, modules);
  return profiles->last.front().time_ns / 1'000'000;
}

// The first one of the program that runs now stays.
void KeepAtMost(unsigned most, const std::string& folder, std::uint64_t pid) {
  std::vector<std::string> paths = SnapshotsOf(folder, pid);
  std::erase(paths, FirstOfNewestRun(paths));
  for (std::size_t i = 0; paths.size() - i >= most; ++i) {
    std::error_code gone;
    std::filesystem::remove(paths[i], gone);
  }
}

// True: it is to go on. `seen`: the process could be read before.
bool Look(const std::string& pid, const std::string& folder, bool seen,
          int& status) {
  std::string lines;
  const std::uint64_t number = std::stoull(pid);
  const absl::StatusOr<std::uint64_t> unix_ms = ReadSnapshot(pid, lines);
  if (!unix_ms.ok()) {
    Complain(ForTerminal(unix_ms.status().message()));
    status = seen && HasEnded(number) ? kDone : kNotDone;
    return false;
  }
  if (!Succeeded(WriteNewFile(SnapshotPath(folder, number, *unix_ms), lines))) {
    status = kNotDone;
    return false;
  }
  KeepAtMost(absl::GetFlag(FLAGS_keep), folder, number);
  return true;
}

int Watch(const std::vector<std::string>& arguments) {
  const absl::Duration every = absl::GetFlag(FLAGS_every);
  if (arguments.size() != 2 || every < absl::Milliseconds(100) ||
      every > absl::Hours(24) || absl::GetFlag(FLAGS_keep) < 2) {
    return WrongUsage(
        "name a process and a folder; --every is from 100ms to 24h, --keep at "
        "least 2 (hakmem help watch)");
  }
  if (!IsProcess(arguments[0])) return NotDone(NobodyNamed(arguments[0]));
  std::error_code error;
  std::filesystem::create_directories(arguments[1], error);
  if (error) {
    return NotDone(absl::StrCat("cannot make ", ForTerminal(arguments[1]), ": ",
                                error.message()));
  }
  const EndSignals signals({SIGINT, SIGTERM, SIGHUP});
  int status = kDone;
  bool seen = false;
  while (Look(arguments[0], arguments[1], seen, status)) {
    seen = true;
    if (signals.ComeWithin(every)) break;
  }
  return status;
}

}  // namespace

constexpr Command kWatchCommand = {
    "watch",
    "keeps heap profiles of a process, to see later what has grown",
    "[--FLAG…] PID|NAME FOLDER",
    R"(
Writes the heap profile of a process that runs on hakmem into the folder,
again and again, until the process ends or a signal (Ctrl-C) ends it. Of
many it keeps the first and the newest ones. Then

    hakmem heap --diff FOLDER               from the first one on
    hakmem heap --diff --since=1h FOLDER    in the last hour

show which places have grown; each file, PID.MILLISECONDS.heap, is a heap
profile like any other. The process is neither stopped nor disturbed; it
takes its user, or root.

Exit status: 0 when the process or a signal ended it, 1 when something
could not be read or written, 2 for a wrong command line.)",
    kFlags,
    Watch,
    OneProcessNamed,
};

}  // namespace hakmem::tools
