#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "allocator/config/control_tables.h"
#include "tools/hakmem/commands.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/process_image.h"
#include "tools/hakmem/process_names.h"
#include "tools/hakmem/words.h"

ABSL_FLAG(double, wait, 1,
          "How many seconds the process has to obey, at most 86400.");

namespace hakmem::tools {
namespace {

// What the threads of a process do.
struct ProcessActivity {
  std::uint64_t threads = 0;   // 0: the kernel does not tell
  std::uint64_t running = 0;   // of them, at the moment
  std::uint64_t stopped = 0;   // of them, by a signal or a debugger
  std::uint64_t switches = 0;  // how often a thread has stopped to run
};

// "State:\tS (sleeping)", "voluntary_ctxt_switches:\t12".
void AddLine(std::string_view line, ProcessActivity& activity) {
  if (absl::ConsumePrefix(&line, "State:")) {
    ++activity.threads;
    // D: it sleeps in the kernel, and goes on soon.
    const std::string_view state = absl::StripLeadingAsciiWhitespace(line);
    if (state.starts_with('R') || state.starts_with('D')) ++activity.running;
    if (state.starts_with('T') || state.starts_with('t')) ++activity.stopped;
    return;
  }
  std::uint64_t count = 0;
  if ((absl::ConsumePrefix(&line, "voluntary_ctxt_switches:") ||
       absl::ConsumePrefix(&line, "nonvoluntary_ctxt_switches:")) &&
      absl::SimpleAtoi(line, &count)) {
    activity.switches += count;
  }
}

ProcessActivity ReadActivity(std::uint64_t pid) {
  ProcessActivity activity;
  const std::string folder = absl::StrCat("/proc/", pid, "/task");
  for (const std::uint64_t thread : NumbersIn(folder)) {
    std::ifstream file(absl::StrCat(folder, "/", thread, "/status"));
    for (std::string line; std::getline(file, line);) AddLine(line, activity);
  }
  return activity;
}

// Whether no thread has run since `before`.
bool HasSlept(const ProcessActivity& before, const ProcessActivity& now) {
  return now.threads != 0 && now.threads == before.threads &&
         now.running == 0 && before.running == 0 &&
         now.switches == before.switches;
}

constexpr const char* kFlags[] = {"wait"};
constexpr char kMagic[8] = "hakctrl";
constexpr absl::Duration kPause = absl::Milliseconds(10);
constexpr std::uint64_t kMaxDecayMs = 24ULL * 3600 * 1000;
constexpr double kMaxWaitSeconds = 24 * 3600;

// One command to one process.
class Control {
 public:
  explicit Control(const ProcessImage& image) : image_(image) {}

  // The result, once the process has obeyed.
  absl::StatusOr<std::uint64_t> Do(ControlCommand command,
                                   std::uint64_t argument,
                                   absl::Duration patience) {
    absl::Status status = Find();
    if (status.ok()) status = AwaitTurn(patience);
    std::uint64_t last = 0;
    if (status.ok()) status = Get(tables_.request, last);
    // One that ended without waiting. What was never whole nobody obeys.
    if (status.ok() && IsControlRequest(last)) {
      status = AwaitDone(last, patience);
    }
    const std::uint64_t request =
        MakeControlRequest(ControlNumberOf(last) + 1, command);
    if (status.ok()) status = Put(tables_.argument, argument);
    if (status.ok()) status = Put(tables_.request, request);
    if (status.ok()) status = AwaitDone(request, patience);
    std::uint64_t result = 0;
    if (status.ok()) status = Get(tables_.result, result);
    if (!status.ok()) return status;
    return result;
  }

 private:
  absl::Status Find() {
    absl::Status status =
        image_.ReadTables("hakmem_control", "it takes no commands", tables_);
    if (!status.ok()) return status;
    if (std::memcmp(tables_.magic, kMagic, sizeof(kMagic)) != 0 ||
        tables_.version != ControlTables::kVersion ||
        tables_.table_bytes < sizeof(tables_)) {
      return image_.UnknownForm("takes commands");
    }
    std::uint32_t allowed = 0;
    status = image_.Read(AddressOf(tables_.allowed), &allowed, sizeof(allowed));
    if (!status.ok()) return status;
    if (allowed == 0) {
      return absl::PermissionDeniedError(absl::StrCat(
          image_.Who(),
          " takes no commands: it was not started with "
          "HAKMEM_CONTROL=1 (and HAKMEM_BACKGROUND=1, or 2 for one "
          "thread, to obey while it sleeps)"));
    }
    return absl::OkStatus();
  }

  absl::Status Get(const void* there, std::uint64_t& word) const {
    return image_.Read(AddressOf(there), &word, sizeof(word));
  }
  absl::Status Put(const void* there, std::uint64_t word) const {
    return image_.Write(AddressOf(there), &word, sizeof(word));
  }
  // Other commands wait from here on until the image is closed.
  absl::Status AwaitTurn(absl::Duration patience) const {
    const absl::Time end = absl::Now() + patience;
    while (!image_.TryLock()) {
      if (absl::Now() >= end) {
        return absl::DeadlineExceededError(absl::StrCat(
            "another command to ", image_.Who(), " waits for it to obey"));
      }
      absl::SleepFor(kPause);
    }
    return absl::OkStatus();
  }

  absl::Status AwaitDone(std::uint64_t request, absl::Duration patience) const {
    const absl::Time end = absl::Now() + patience;
    const ProcessActivity before = ReadActivity(image_.pid());
    for (;;) {
      std::uint64_t done = 0;
      if (absl::Status status = Get(tables_.done, done); !status.ok()) {
        return status;
      }
      if (done == request) return absl::OkStatus();
      if (absl::Now() >= end) {
        return absl::DeadlineExceededError(absl::StrCat(
            image_.Who(), " has not obeyed yet: ", Reason(before)));
      }
      absl::SleepFor(kPause);
    }
  }

  // Why it has not obeyed, and when it will.
  std::string Reason(const ProcessActivity& before) const {
    constexpr std::string_view kNextCall =
        "It obeys at its next call of malloc off the hot path";
    const ProcessActivity now = ReadActivity(image_.pid());
    if (now.stopped != 0 && now.stopped == now.threads) {
      return "a signal or a debugger has stopped it";
    }
    if (!HasSlept(before, now)) {
      return absl::StrCat("it runs. ", kNextCall);
    }
    const std::string who =
        now.threads == 1 ? "its thread sleeps"
                         : absl::StrCat("its ", now.threads, " threads sleep");
    const std::string_view value = now.threads == 1 ? "2" : "1";
    return absl::StrCat(
        who, ", and nothing runs in it meanwhile. ", kNextCall,
        ". Started with HAKMEM_BACKGROUND=", value,
        " it obeys while it sleeps, too, twice in HAKMEM_DECAY_MS");
  }

  const ProcessImage& image_;
  ControlTables tables_ = {};
};

int Send(const std::string& name, ControlCommand command,
         std::uint64_t argument, std::string (*tell)(std::uint64_t result)) {
  const double wait = absl::GetFlag(FLAGS_wait);
  if (!(wait >= 0 && wait <= kMaxWaitSeconds)) {
    return WrongUsage("--wait is from 0 to 86400 seconds");
  }
  const absl::StatusOr<ProcessImage> image = ProcessImage::Open(name);
  if (!image.ok()) return NotDone(ForTerminal(image.status().message()));
  if (image->is_core()) {
    return NotDone(absl::StrCat(ForTerminal(name),
                                " is a core file, which takes no commands"));
  }
  const absl::StatusOr<std::uint64_t> result =
      Control(*image).Do(command, argument, absl::Seconds(wait));
  if (!result.ok()) return NotDone(ForTerminal(result.status().message()));
  PrintOut(absl::StrCat(ForTerminal(image->program()), "[", image->pid(),
                        "]: ", tell(*result), "\n"));
  return kDone;
}

int Purge(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1) {
    return WrongUsage("name one process (hakmem help purge)");
  }
  return Send(arguments[0], ControlCommand::kPurge, 0, [](std::uint64_t bytes) {
    return absl::StrCat(Bytes(bytes), " went back to the kernel");
  });
}

int Option(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1) {
    return WrongUsage(absl::StrCat(
        "says nothing to set. The one option that can be set in a process "
        "that runs is decay_ms: for how many milliseconds it keeps free memory "
        "before that goes back to the kernel. For half a second: hakmem "
        "option ",
        ForShell(arguments[0]), " decay_ms=500"));
  }
  std::string_view value;
  if (arguments.size() == 2) value = arguments[1];
  std::uint64_t decay_ms = 0;
  if (!absl::ConsumePrefix(&value, "decay_ms=") ||
      !absl::SimpleAtoi(value, &decay_ms) || decay_ms == 0 ||
      decay_ms > kMaxDecayMs) {
    return WrongUsage(
        "name one process, and decay_ms= from 1 to 86400000 (hakmem help "
        "option)");
  }
  return Send(arguments[0], ControlCommand::kDecayMs, decay_ms,
              [](std::uint64_t before) {
                return absl::StrCat("decay_ms was ", before);
              });
}

}  // namespace

constexpr Command kPurgeCommand = {
    "purge",
    "has a running process give its free memory back to the kernel",
    "[--FLAG…] PID|NAME",
    R"(
Has a process that runs on hakmem, and was started with HAKMEM_CONTROL=1,
give all memory that it keeps for reuse back to the kernel, as hakmem_purge()
does, and says how much that was. The process obeys when a call of malloc
leaves the hot path; one that sleeps, with HAKMEM_BACKGROUND. The command says
after a second why the process has not obeyed, and what to start it with. It
takes the process's user, or root.

Exit status: 0 when the process has obeyed, 1 when not, 2 for a wrong command
line.)",
    kFlags,
    Purge,
    OneProcessNamed,
};

constexpr Command kOptionCommand = {
    "option",
    "sets an option of a running process: how long it keeps free memory",
    "[--FLAG…] PID|NAME decay_ms=N",
    R"(
Sets the decay delay (HAKMEM_DECAY_MS) of a process that runs on hakmem, and
was started with HAKMEM_CONTROL=1: how many milliseconds it keeps free memory
before it goes back to the kernel, at least 1. The process obeys when a call of
malloc leaves the hot path. It takes the process's user, or root.

Exit status: 0 when the process has obeyed, 1 when not, 2 for a wrong command
line.)",
    kFlags,
    Option,
    OneProcessNamed,
};

}  // namespace hakmem::tools
