#include "tools/hakmem/heap_growth.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/hakmem/commands.h"
#include "tools/hakmem/end_signals.h"
#include "tools/hakmem/heap_diff.h"
#include "tools/hakmem/heap_input.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

struct Side {
  std::string name;
  HeapProfiles profiles = {};
};

bool Print(Side before, Side after, const HeapModules& modules, HeapKind by,
           const FramePolicy& policy) {
  HeapSymbols symbols(
      modules, {absl::GetFlag(FLAGS_symbolizer), absl::GetFlag(FLAGS_symbols)},
      policy);
  symbols.Resolve(before.profiles);
  symbols.Resolve(after.profiles);
  before.profiles = symbols.Shown(std::move(before.profiles));
  after.profiles = symbols.Shown(std::move(after.profiles));
  const HeapDiff diff = {.before_path = before.name,
                         .before = before.profiles,
                         .after_path = after.name,
                         .after = after.profiles,
                         .symbols = symbols,
                         .by = by};
  if (SecondsBetween(diff) < 0) {
    Complain(absl::StrCat("by their times ", ForTerminal(before.name),
                          " is later than ", ForTerminal(after.name),
                          ": growth is shown as shrinkage. The earlier one "
                          "comes first"));
  }
  PrintOut(absl::GetFlag(FLAGS_json)
               ? HeapDiffAsJson(diff)
               : HeapDiffAsText(diff, absl::GetFlag(FLAGS_top).value_or(
                                          kDefaultHeapRows)));
  const std::string path = absl::GetFlag(FLAGS_html);
  if (!path.empty() && !Succeeded(WriteFile(path, HeapDiffAsPage(diff)))) {
    return false;
  }
  return before.profiles.whole() && after.profiles.whole();
}

bool PrintAll(const std::vector<std::string>& before_paths, Side before,
              const std::vector<std::string>& after_paths, Side after,
              HeapKind by, const FramePolicy& policy) {
  HeapModules modules;
  const bool all = ReadHeaps(before_paths, modules, before.profiles) &&
                   ReadHeaps(after_paths, modules, after.profiles);
  return all && Print(std::move(before), std::move(after), modules, by, policy);
}

}  // namespace

bool ShowHeapDiff(const std::string& before, const std::string& after,
                  HeapKind by, const FramePolicy& policy) {
  return PrintAll({before}, {before}, {after}, {after}, by, policy);
}

bool ShowFolderGrowth(const std::string& folder, absl::Duration since,
                      HeapKind by, const FramePolicy& policy) {
  const absl::StatusOr<SnapshotPairs> pairs = PickSnapshots(folder, since);
  return Succeeded(pairs.status()) &&
         PrintAll(pairs->before, {pairs->before.front()}, pairs->after,
                  {pairs->after.front()}, by, policy);
}

bool ShowGrowthOf(const std::vector<std::string>& pids, absl::Duration time,
                  HeapKind by, const FramePolicy& policy) {
  HeapModules modules;
  Side before = {"before"};
  Side after = {"after"};
  if (!ReadHeaps(pids, modules, before.profiles)) return false;
  EndSignals({SIGINT}).ComeWithin(time);
  const bool all = ReadHeaps(pids, modules, after.profiles);
  // That a process has ended was said; its memory has not shrunk.
  std::erase_if(before.profiles.last, [&after](const HeapProfile& process) {
    return std::ranges::find(after.profiles.last, process.pid,
                             &HeapProfile::pid) == after.profiles.last.end();
  });
  return !after.profiles.last.empty() &&
         Print(std::move(before), std::move(after), modules, by, policy) && all;
}

}  // namespace hakmem::tools
