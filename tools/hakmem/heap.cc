#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "tools/hakmem/commands.h"
#include "tools/hakmem/heap_growth.h"
#include "tools/hakmem/heap_input.h"
#include "tools/hakmem/heap_policy.h"
#include "tools/hakmem/heap_process.h"
#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/input_file.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/process_blocks.h"
#include "tools/hakmem/process_image.h"
#include "tools/hakmem/process_names.h"
#include "tools/hakmem/words.h"

ABSL_FLAG(std::string, by, "live",
          "Which bytes: live, peak (live when most were) or allocated (since "
          "the start).");
ABSL_FLAG(bool, by_class, false,
          "Counts all live blocks of a process or core file, by size class: "
          "exact, and without names; and says where the free ones are.");
ABSL_FLAG(bool, diff, false,
          "Shows by how much each place has grown from the first profile to "
          "the second, or in a folder of `hakmem watch`.");
ABSL_FLAG(absl::Duration, for, absl::ZeroDuration(),
          "Shows by how much each place grows from now on, in so long: 60s, "
          "10m, 2h. Ctrl-C ends it early.");
ABSL_FLAG(absl::Duration, since, absl::ZeroDuration(),
          "With --diff of a folder: from so long before the newest profile on, "
          "as 1h. Default: from the oldest.");
ABSL_FLAG(std::string, save, "",
          "Also writes the profile itself to this file, for a later --diff.");
ABSL_FLAG(std::string, folded, "",
          "Also writes folded stacks with their bytes to this file, for flame "
          "graphs.");

namespace hakmem::tools {
namespace {

constexpr const char* kFlags[] = {
    "by",     "by_class", "diff", "for",     "top",        "frames",
    "focus",  "ignore",   "hide", "no_fold", "json",       "html",
    "folded", "pprof",    "save", "since",   "symbolizer", "symbols"};

std::optional<HeapKind> KindNamed(std::string_view name) {
  for (const HeapKind kind :
       {HeapKind::kLive, HeapKind::kPeak, HeapKind::kAllocated}) {
    if (name == HeapKindName(kind)) return kind;
  }
  return std::nullopt;
}

// An empty path: nobody asked for it.
bool Write(const std::string& path, const HeapReport& report,
           std::string (*make)(const HeapReport&)) {
  return path.empty() || Succeeded(WriteFile(path, make(report)));
}

int Show(const std::vector<std::string>& paths, HeapKind by,
         const FramePolicy& policy) {
  HeapModules modules;
  HeapProfiles profiles;
  const int status = ReadHeaps(paths, modules, profiles) ? kDone : kNotDone;
  if (profiles.last.empty()) return status;
  if (std::ranges::none_of(profiles.last, HasSamples)) {
    return NotDone(NoSamples(profiles.last.back()));
  }
  HeapSymbols symbols(
      modules, {absl::GetFlag(FLAGS_symbolizer), absl::GetFlag(FLAGS_symbols)},
      policy);
  symbols.Resolve(profiles);
  const std::string save = absl::GetFlag(FLAGS_save);
  const bool saved = save.empty() ||
                     Succeeded(WriteFile(save, HeapAsLines(profiles, modules)));
  const HeapProfiles shown = symbols.Shown(profiles);
  if (std::ranges::none_of(shown.last, HasSamples)) {
    return NotDone("no place is one that --focus, --ignore and --hide leave");
  }
  const HeapReport report = {
      .files = paths, .profiles = shown, .symbols = symbols, .by = by};
  PrintOut(absl::GetFlag(FLAGS_json)
               ? HeapAsJson(report)
               : HeapAsText(report, absl::GetFlag(FLAGS_top).value_or(
                                        kDefaultHeapRows)));
  const bool html = Write(absl::GetFlag(FLAGS_html), report, HeapAsPage);
  const bool folded = Write(absl::GetFlag(FLAGS_folded), report, HeapAsFolded);
  // For -disasm.
  const HeapProfiles apart =
      symbols.Shown(profiles, HeapSymbols::OnePlace::kOfAddresses);
  const bool pprof =
      Write(absl::GetFlag(FLAGS_pprof),
            {.files = paths, .profiles = apart, .symbols = symbols, .by = by},
            HeapAsPprof);
  return html && folded && pprof && saved && profiles.whole() ? status
                                                              : kNotDone;
}

int ShowClasses(const std::string& name) {
  if (!IsProcessOrCore(name)) {
    return NotDone(absl::StrCat(
        ForTerminal(name),
        ": --by-class counts the blocks of a process or a core file; a heap "
        "profile does not have them"));
  }
  const absl::StatusOr<ProcessImage> image = ProcessImage::Open(name);
  const absl::StatusOr<ProcessBlocks> blocks =
      image.ok() ? CountBlocks(*image) : image.status();
  if (!blocks.ok()) {
    ComplainOfHeap(name, blocks.status().message());
    return kNotDone;
  }
  PrintOut(absl::GetFlag(FLAGS_json) ? ClassesAsJson(*blocks)
                                     : ClassesAsText(*blocks));
  return kDone;
}

// A flag that comparisons have no use for.
bool WritesMore() {
  return !absl::GetFlag(FLAGS_folded).empty() ||
         !absl::GetFlag(FLAGS_pprof).empty() ||
         !absl::GetFlag(FLAGS_save).empty();
}

// A flag that --by-class would have no use for.
bool AsksForPlaces() {
  return absl::GetFlag(FLAGS_diff) || absl::GetFlag(FLAGS_top).has_value() ||
         absl::GetFlag(FLAGS_by) != HeapKindName(HeapKind::kLive) ||
         !absl::GetFlag(FLAGS_html).empty() ||
         absl::GetFlag(FLAGS_for) != absl::ZeroDuration() ||
         absl::GetFlag(FLAGS_since) != absl::ZeroDuration() || WritesMore() ||
         AsksForFrames() || !absl::GetFlag(FLAGS_symbolizer).empty() ||
         !absl::GetFlag(FLAGS_symbols).empty();
}

int Complete(bool all) { return all ? kDone : kNotDone; }

int CompareTwo(const std::vector<std::string>& arguments, HeapKind by,
               const FramePolicy& policy) {
  const absl::Duration since = absl::GetFlag(FLAGS_since);
  std::error_code error;
  const bool is_folder = arguments.size() == 1 &&
                         std::filesystem::is_directory(arguments[0], error);
  if ((!is_folder &&
       (arguments.size() != 2 || since != absl::ZeroDuration())) ||
      since < absl::ZeroDuration() ||
      absl::GetFlag(FLAGS_for) != absl::ZeroDuration() || WritesMore()) {
    return WrongUsage(
        "--diff takes two heap profiles, or a folder of them that can be read, "
        "and neither --for, --save, --folded nor --pprof; --since is a time "
        "for a folder (hakmem help heap)");
  }
  return Complete(is_folder
                      ? ShowFolderGrowth(arguments[0], since, by, policy)
                      : ShowHeapDiff(arguments[0], arguments[1], by, policy));
}

int Follow(const std::vector<std::string>& pids, HeapKind by,
           const FramePolicy& policy) {
  const absl::Duration time = absl::GetFlag(FLAGS_for);
  if (time < absl::ZeroDuration() || time > absl::Hours(24 * 366) ||
      absl::GetFlag(FLAGS_since) != absl::ZeroDuration() || WritesMore()) {
    return WrongUsage(
        "--for takes a time of up to a year and processes, and neither "
        "--since, --save, "
        "--folded nor --pprof (hakmem help heap)");
  }
  for (const std::string& pid : pids) {
    if (IsProcess(pid)) continue;
    return NotDone(NobodyNamed(pid));
  }
  return Complete(ShowGrowthOf(pids, time, by, policy));
}

int Heap(const std::vector<std::string>& arguments) {
  if (absl::GetFlag(FLAGS_by_class)) {
    if (arguments.size() != 1 || AsksForPlaces()) {
      return WrongUsage(
          "--by-class takes one process, or one core file, and no flag but "
          "--json (hakmem help heap)");
    }
    return ShowClasses(arguments[0]);
  }
  const std::optional<HeapKind> by = KindNamed(absl::GetFlag(FLAGS_by));
  if (!by.has_value()) {
    return WrongUsage(
        absl::StrCat("--by=", ForTerminal(absl::GetFlag(FLAGS_by)),
                     ": neither live, peak nor allocated"));
  }
  const absl::StatusOr<FramePolicy> policy = AskedPolicy();
  if (!policy.ok()) return WrongUsage(policy.status().message());
  if (absl::GetFlag(FLAGS_diff)) return CompareTwo(arguments, *by, *policy);
  if (arguments.empty()) {
    return WrongUsage(
        "name a process, a core file or a heap profile (hakmem help heap)");
  }
  if (absl::GetFlag(FLAGS_for) != absl::ZeroDuration()) {
    return Follow(arguments, *by, *policy);
  }
  if (absl::GetFlag(FLAGS_since) != absl::ZeroDuration()) {
    return WrongUsage("--since goes with --diff FOLDER (hakmem help heap)");
  }
  return Show(arguments, *by, *policy);
}

// A comparison and a count are of one process each.
absl::StatusOr<std::vector<std::string>> Processes(
    const std::vector<std::string>& arguments) {
  if (absl::GetFlag(FLAGS_diff) || absl::GetFlag(FLAGS_by_class)) {
    return EachOneProcess(arguments);
  }
  absl::StatusOr<std::vector<std::string>> all = ProcessesNamed(arguments);
  if (!all.ok()) return all;
  if (all->size() > arguments.size()) {
    Complain(absl::StrCat(
        "shows all processes of that name: ", absl::StrJoin(*all, ", "),
        "; name one by its number to see it alone"));
  }
  return EachOnce(*all, [](const std::string& name) {
    return IsProcess(name) ? FileIdentity(0, 0, name) : IdentityOf(name);
  });
}

}  // namespace

constexpr Command kHeapCommand = {
    "heap",
    "who holds a program's memory, from its heap profile",
    "[--FLAG…] PID|NAME|CORE|FILE… | --for=TIME [--FLAG…] PID|NAME… | --diff "
    "BEFORE AFTER | --diff [--FLAG…] FOLDER",
    R"(
Reads the heap profile out of the memory of a process that runs on hakmem
(PID), or of its core file, or what HAKMEM_HEAP_PROFILE=FILE or
hakmem_heap_profile() wrote, or a heap profile of pprof's form. It shows
which places of the program and which functions hold its memory, held it at
the peak (--by=peak) or have allocated most (--by=allocated). With
--by-class it counts all live blocks of a process or a core file by their
size.

Wrappers of malloc are folded into the place that called them. --focus,
--ignore and --hide choose places and frames as with pprof.

What has grown: --for=60s shows it of a process from now on. --save=FILE
keeps a profile, and --diff compares it later with the process, or with
another profile. hakmem watch keeps many in a folder. A function that is in
several places, as in a recursion, has the growth of them all, each once.

A process needs no option for it and is neither stopped nor disturbed; it
takes the process's user, or root. Of a file that several processes wrote, or
one several times, the last profile of each process is shown. FILE may be -:
standard input; one with a process's number or name is written ./FILE.

Exit status: 0 when everything could be read and written, 1 when not
(what could be read is shown all the same) or when nothing was sampled,
2 for a wrong command line.)",
    kFlags,
    Heap,
    Processes,
};

}  // namespace hakmem::tools
