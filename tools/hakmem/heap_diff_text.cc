// The comparison of two heap profiles for a terminal.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/hakmem/heap_diff.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/text_table.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

std::string Around(const HeapGrowth& growth) {
  const double bytes = kErrorsAround * growth.StandardErrorBytes();
  return absl::StrCat("±",
                      Bytes(static_cast<std::uint64_t>(std::llround(bytes))));
}

// " in 10m, +48.0 MiB an hour"; "" where it is not known.
std::string Rate(const HeapDiff& diff, std::int64_t bytes) {
  const double seconds = SecondsBetween(diff);
  if (seconds <= 0) return "";
  const absl::Duration duration = absl::Seconds(seconds);
  return absl::StrCat(
      " in ",
      absl::FormatDuration(absl::Trunc(
          duration, seconds < 10 ? absl::Milliseconds(100) : absl::Seconds(1))),
      ", ",
      SignedBytes(std::llround(static_cast<double>(bytes) * 3600 / seconds)),
      " an hour");
}

// Counted, where both profiles were.
HeapGrowth ChangeOf(const HeapProfile& before, const HeapProfile& after,
                    HeapKind by) {
  if (by == HeapKind::kLive && before.counted && after.counted) {
    return {.before = {.bytes = before.counted->bytes},
            .after = {.bytes = after.counted->bytes}};
  }
  return {.before = before.totals.Of(by), .after = after.totals.Of(by)};
}

// "+4.0 MiB live, counted in 10m, …"; "": not all processes were counted.
std::string CountedText(const HeapDiff& diff) {
  HeapGrowth all;
  for (const HeapProfiles* const side : {&diff.before, &diff.after}) {
    for (const HeapProfile& profile : side->last) {
      if (diff.by != HeapKind::kLive || !profile.counted) return "";
      (side == &diff.before ? all.before : all.after).bytes +=
          profile.counted->bytes;
    }
  }
  return absl::StrCat(SignedBytes(all.bytes()), " live, counted",
                      Rate(diff, all.bytes()), ": ", Bytes(all.before.bytes),
                      " in ", WhoseText(diff.before), ", then ",
                      Bytes(all.after.bytes), " in ", WhoseText(diff.after),
                      "\n  by samples: ");
}

// The process of `profiles` that is the same as `profile`; or `none`.
const HeapProfile& SameIn(const HeapProfiles& profiles,
                          const HeapProfile& profile, const HeapProfile& none) {
  const auto is_same = [&profile](const HeapProfile& other) {
    return other.pid == profile.pid && other.program == profile.program;
  };
  const auto at = std::ranges::find_if(profiles.last, is_same);
  return at == profiles.last.end() ? none : *at;
}

// Which of several processes have grown, begun or ended; "": there is one.
std::string ProcessesText(const HeapDiff& diff, std::size_t max_rows) {
  if (std::max(diff.before.last.size(), diff.after.last.size()) < 2) return "";
  struct Row {
    HeapGrowth change;
    std::string name;
  };
  std::vector<Row> rows;
  HeapProfile none;
  none.counted.emplace();
  for (const HeapProfile& after : diff.after.last) {
    rows.push_back(
        {ChangeOf(SameIn(diff.before, after, none), after, diff.by),
         absl::StrCat(ProcessName(after), after.title.empty() ? "" : " ",
                      ForTerminal(after.title))});
  }
  for (const HeapProfile& before : diff.before.last) {
    if (&SameIn(diff.after, before, none) != &none) continue;
    rows.push_back({ChangeOf(before, none, diff.by), ProcessName(before)});
  }
  std::ranges::sort(rows, std::greater<>(), [](const Row& row) {
    return std::pair(row.change.bytes(), row.name);
  });
  Table table({"growth", "before", "after", "process"}, 3);
  for (const Row& row : rows) {
    if (row.change.bytes() == 0 || table.size() == max_rows) continue;
    table.Add({SignedBytes(row.change.bytes()), Bytes(row.change.before.bytes),
               Bytes(row.change.after.bytes), Shortened(row.name)});
  }
  if (table.size() == 0) return "";
  return absl::StrCat("\nGrowth by processes\n", table.Text());
}

}  // namespace

std::string HeapDiffAsText(const HeapDiff& diff, std::size_t max_rows) {
  const HeapGrowth total = TotalGrowth(diff);
  const std::string counted = CountedText(diff);
  std::string text =
      absl::StrCat(counted, SignedBytes(total.bytes()), " ", Around(total));
  if (counted.empty()) {
    absl::StrAppend(&text, " ", HeapWhen(diff.by), Rate(diff, total.bytes()),
                    ": ", Bytes(total.before.bytes), " in ",
                    WhoseText(diff.before), ", then ", Bytes(total.after.bytes),
                    " in ", WhoseText(diff.after));
  }
  absl::StrAppend(&text, counted.empty() ? "\n  " : "; ",
                  "± holds for 9 estimates in 10; sure is what exceeds it\n",
                  ProcessesText(diff, max_rows), "\nGrowth by places\n");
  const std::vector<HeapGrowth> growths = GrowthBySite(diff);
  Table table({"growth", "±", "sure", "before", "after", "samples", "place"},
              6);
  for (const HeapGrowth& growth : growths) {
    if (table.size() == max_rows) break;
    std::vector<std::string> place = PlaceLines(diff.symbols, *growth.site);
    table.Add({SignedBytes(growth.bytes()), Around(growth),
               growth.is_sure() ? "yes" : "no", Bytes(growth.before.bytes),
               Bytes(growth.after.bytes),
               absl::StrCat(growth.before.samples, ", ", growth.after.samples),
               place.front()},
              {place.begin() + 1, place.end()});
  }
  text += table.TextOf(growths.size());
  const std::vector<HeapGrowth> functions = GrowthByFunction(diff, growths);
  Table shared({"growth", "±", "sure", "places", "function"}, 4);
  for (const HeapGrowth& growth : functions) {
    if (shared.size() == max_rows) break;
    shared.Add({SignedBytes(growth.bytes()), Around(growth),
                growth.is_sure() ? "yes" : "no", absl::StrCat(growth.sites),
                Shortened(ForTerminal(growth.function))});
  }
  if (!functions.empty()) {
    absl::StrAppend(&text, "\nGrowth by functions of several places\n",
                    shared.TextOf(functions.size()));
  }
  std::vector<std::string> remarks = HeapDiffRemarks(diff);
  remarks.insert(remarks.end(), diff.symbols.notes().begin(),
                 diff.symbols.notes().end());
  if (!remarks.empty()) text += "\nRemarks\n";
  for (const std::string& remark : remarks) {
    text += Wrapped(remark, kHeapTextColumns, 2);
  }
  return text;
}

}  // namespace hakmem::tools
