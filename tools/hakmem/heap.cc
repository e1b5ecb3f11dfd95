#include "tools/hakmem/heap.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/hakmem/class_report.h"
#include "tools/hakmem/complaint.h"
#include "tools/hakmem/heap_diff.h"
#include "tools/hakmem/heap_page.h"
#include "tools/hakmem/heap_process.h"
#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/input_file.h"
#include "tools/hakmem/output_file.h"
#include "tools/hakmem/process_blocks.h"
#include "tools/hakmem/process_image.h"
#include "tools/hakmem/standard_output.h"
#include "tools/hakmem/words.h"

// Of explain and trace, with the same meaning.
ABSL_DECLARE_FLAG(std::string, html);
ABSL_DECLARE_FLAG(bool, json);
ABSL_DECLARE_FLAG(std::string, pprof);
ABSL_DECLARE_FLAG(std::string, symbolizer);
ABSL_DECLARE_FLAG(std::string, symbols);
ABSL_DECLARE_FLAG(std::optional<unsigned>, top);

ABSL_FLAG(std::string, by, "live",
          "Which bytes: live, peak (live when most were) or allocated (since "
          "the start).");
ABSL_FLAG(bool, by_class, false,
          "Counts all live blocks of a process or core file, by size class: "
          "exact, and without names; and says where the free ones are.");
ABSL_FLAG(bool, diff, false,
          "Shows by how much each place has grown from the first file to the "
          "second.");
ABSL_FLAG(std::string, folded, "",
          "Also writes folded stacks with their bytes to this file, for flame "
          "graphs.");

namespace hakmem::tools {
namespace {

constexpr int kAllGood = 0;
constexpr int kNotAllRead = 1;
constexpr int kWrongUsage = 2;
constexpr unsigned kDefaultRows = 20;

constexpr const char* kFlags[] = {"by",         "by_class", "diff",   "top",
                                  "json",       "html",     "folded", "pprof",
                                  "symbolizer", "symbols"};

std::optional<HeapKind> KindNamed(std::string_view name) {
  for (const HeapKind kind :
       {HeapKind::kLive, HeapKind::kPeak, HeapKind::kAllocated}) {
    if (name == HeapKindName(kind)) return kind;
  }
  return std::nullopt;
}

absl::StatusOr<HeapProfiles> ReadInput(const std::string& path,
                                       HeapModules& modules) {
  if (IsProcessOrCore(path)) return ReadHeapOfProcess(path, modules);
  std::string text;
  InputFile file(path);
  const absl::Status status =
      file.ReadAll([&text](std::string_view bytes) { text += bytes; });
  if (!status.ok()) return status;
  return ReadHeapProfiles(text, modules);
}

int CannotRead(const std::string& path, std::string_view why) {
  // What is said of a process is a sentence that names it.
  Complain(IsProcessOrCore(path) ? ForTerminal(why)
                                 : absl::StrCat(ForTerminal(path), ": ", why));
  return kNotAllRead;
}

bool AllWhole(const HeapProfiles& profiles) {
  return std::ranges::all_of(profiles.last, &HeapProfile::whole);
}

// An empty path: nobody asked for it.
template <typename Shown>
bool Write(const std::string& path, const Shown& report,
           std::string (*make)(const Shown&)) {
  if (path.empty()) return true;
  const absl::Status status = WriteFile(path, make(report));
  if (!status.ok()) Complain(status.message());
  return status.ok();
}

int Show(const std::vector<std::string>& paths, HeapKind by) {
  HeapModules modules;
  HeapProfiles profiles;
  int status = kAllGood;
  for (const std::string& path : paths) {
    absl::StatusOr<HeapProfiles> read = ReadInput(path, modules);
    if (read.ok()) {
      profiles.Append(*std::move(read));
    } else {
      status = CannotRead(path, read.status().message());
    }
  }
  if (profiles.last.empty()) return status;
  if (std::ranges::none_of(profiles.last, HasSamples)) {
    Complain(NoSamples(profiles.last.back()));
    return kNotAllRead;
  }
  HeapSymbols symbols(
      modules, {absl::GetFlag(FLAGS_symbolizer), absl::GetFlag(FLAGS_symbols)});
  symbols.Resolve(profiles);
  const HeapReport report = {
      .files = paths, .profiles = profiles, .symbols = symbols, .by = by};
  PrintOut(absl::GetFlag(FLAGS_json)
               ? HeapAsJson(report)
               : HeapAsText(report,
                            absl::GetFlag(FLAGS_top).value_or(kDefaultRows)));
  const bool html = Write(absl::GetFlag(FLAGS_html), report, HeapAsPage);
  const bool folded = Write(absl::GetFlag(FLAGS_folded), report, HeapAsFolded);
  const bool pprof = Write(absl::GetFlag(FLAGS_pprof), report, HeapAsPprof);
  return html && folded && pprof && AllWhole(profiles) ? status : kNotAllRead;
}

int ShowDiff(const std::string& before_path, const std::string& after_path,
             HeapKind by) {
  HeapModules modules;
  const absl::StatusOr<HeapProfiles> before = ReadInput(before_path, modules);
  if (!before.ok()) return CannotRead(before_path, before.status().message());
  const absl::StatusOr<HeapProfiles> after = ReadInput(after_path, modules);
  if (!after.ok()) return CannotRead(after_path, after.status().message());
  HeapSymbols symbols(
      modules, {absl::GetFlag(FLAGS_symbolizer), absl::GetFlag(FLAGS_symbols)});
  symbols.Resolve(*before);
  symbols.Resolve(*after);
  const HeapDiff diff = {.before_path = before_path,
                         .before = *before,
                         .after_path = after_path,
                         .after = *after,
                         .symbols = symbols,
                         .by = by};
  PrintOut(absl::GetFlag(FLAGS_json)
               ? HeapDiffAsJson(diff)
               : HeapDiffAsText(
                     diff, absl::GetFlag(FLAGS_top).value_or(kDefaultRows)));
  const bool html = Write(absl::GetFlag(FLAGS_html), diff, HeapDiffAsPage);
  return html && AllWhole(*before) && AllWhole(*after) ? kAllGood : kNotAllRead;
}

int ShowClasses(const std::string& name) {
  if (!IsProcessOrCore(name)) {
    Complain(absl::StrCat(
        ForTerminal(name),
        ": --by-class counts the blocks of a process or a core file; a heap "
        "profile does not have them"));
    return kNotAllRead;
  }
  const absl::StatusOr<ProcessImage> image = ProcessImage::Open(name);
  if (!image.ok()) return CannotRead(name, image.status().message());
  const absl::StatusOr<ProcessBlocks> blocks = CountBlocks(*image);
  if (!blocks.ok()) return CannotRead(name, blocks.status().message());
  PrintOut(absl::GetFlag(FLAGS_json) ? ClassesAsJson(*blocks)
                                     : ClassesAsText(*blocks));
  return kAllGood;
}

// A flag that --by-class would have no use for.
bool AsksForPlaces() {
  return absl::GetFlag(FLAGS_diff) || absl::GetFlag(FLAGS_top).has_value() ||
         absl::GetFlag(FLAGS_by) != HeapKindName(HeapKind::kLive) ||
         !absl::GetFlag(FLAGS_html).empty() ||
         !absl::GetFlag(FLAGS_folded).empty() ||
         !absl::GetFlag(FLAGS_pprof).empty() ||
         !absl::GetFlag(FLAGS_symbolizer).empty() ||
         !absl::GetFlag(FLAGS_symbols).empty();
}

int Heap(const std::vector<std::string>& arguments) {
  if (absl::GetFlag(FLAGS_by_class)) {
    if (arguments.size() != 1 || AsksForPlaces()) {
      Complain(
          "--by-class takes one process, or one core file, and no flag but "
          "--json (hakmem help heap)");
      return kWrongUsage;
    }
    return ShowClasses(arguments[0]);
  }
  const std::optional<HeapKind> by = KindNamed(absl::GetFlag(FLAGS_by));
  if (!by.has_value()) {
    Complain(absl::StrCat("--by=", ForTerminal(absl::GetFlag(FLAGS_by)),
                          ": neither live, peak nor allocated"));
    return kWrongUsage;
  }
  if (absl::GetFlag(FLAGS_diff)) {
    if (arguments.size() != 2 || !absl::GetFlag(FLAGS_folded).empty() ||
        !absl::GetFlag(FLAGS_pprof).empty()) {
      Complain(
          "--diff takes two heap profiles, and neither --folded nor --pprof "
          "(hakmem help heap)");
      return kWrongUsage;
    }
    return ShowDiff(arguments[0], arguments[1], *by);
  }
  if (arguments.empty()) {
    Complain(
        "name a process, a core file or a heap profile (hakmem help heap)");
    return kWrongUsage;
  }
  return Show(arguments, *by);
}

}  // namespace

constexpr Command kHeapCommand = {
    "heap",
    "who holds a program's memory, from its heap profile",
    "[--FLAG…] PID|CORE|FILE… | --diff [--FLAG…] BEFORE AFTER",
    "Reads the heap profile out of the memory of a process that runs on "
    "hakmem\n"
    "(PID), or of its core file, or what HAKMEM_HEAP_PROFILE=FILE or\n"
    "hakmem_heap_profile() wrote. It shows which places of the program and "
    "which\n"
    "functions hold its memory, held it at the peak (--by=peak) or have "
    "allocated\n"
    "most (--by=allocated), or which have grown (--diff). With --by-class it\n"
    "counts all live blocks of a process or a core file by their size.\n"
    "\n"
    "A process needs no option for it and is neither stopped nor disturbed; "
    "it\n"
    "takes the process's user, or root. Of a file that several processes "
    "wrote, or\n"
    "one several times, the last profile of each process is shown. FILE may "
    "be -:\n"
    "standard input; one whose name is a number is written ./NUMBER.\n"
    "\n"
    "Exit status: 0 when everything could be read and written, 1 when not\n"
    "(what could be read is shown all the same) or when nothing was sampled,\n"
    "2 for a wrong command line.",
    kFlags,
    FlagsEnd::kNever,
    kWrongUsage,
    Heap,
};

}  // namespace hakmem::tools
