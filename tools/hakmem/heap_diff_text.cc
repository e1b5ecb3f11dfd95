// The comparison of two heap profiles for a terminal.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/hakmem/heap_diff.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/heap_text.h"
#include "tools/hakmem/text_table.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

std::string Signed(std::int64_t bytes) {
  return bytes < 0
             ? absl::StrCat("-", Bytes(0 - static_cast<std::uint64_t>(bytes)))
             : absl::StrCat("+", Bytes(static_cast<std::uint64_t>(bytes)));
}

std::string Around(const HeapGrowth& growth) {
  const double bytes = kErrorsAround * growth.StandardErrorBytes();
  return absl::StrCat("±",
                      Bytes(static_cast<std::uint64_t>(std::llround(bytes))));
}

std::string WhoseText(const HeapProfiles& profiles) {
  return profiles.last.size() == 1
             ? ProcessName(profiles.last.front())
             : Count(profiles.last.size(), "process", "processes");
}

// " in 10m, +48.0 MiB an hour"; "" where it is not known.
std::string Rate(const HeapDiff& diff, std::int64_t bytes) {
  const double seconds = SecondsBetween(diff);
  if (seconds == 0) return "";
  const absl::Duration duration = absl::Seconds(seconds);
  return absl::StrCat(
      " in ",
      absl::FormatDuration(absl::Trunc(
          duration, seconds < 10 ? absl::Milliseconds(100) : absl::Seconds(1))),
      ", ", Signed(std::llround(static_cast<double>(bytes) * 3600 / seconds)),
      " an hour");
}

}  // namespace

std::string HeapDiffAsText(const HeapDiff& diff, std::size_t max_rows) {
  const HeapGrowth total = TotalGrowth(diff);
  std::string text = absl::StrCat(
      Signed(total.bytes()), " ", Around(total), " ", HeapWhen(diff.by),
      Rate(diff, total.bytes()), ": ", Bytes(total.before.bytes), " in ",
      WhoseText(diff.before), ", then ", Bytes(total.after.bytes), " in ",
      WhoseText(diff.after),
      "\n  ± holds for 9 estimates in 10; sure is what exceeds it\n\nGrowth "
      "by places\n");
  const std::vector<HeapGrowth> growths = GrowthBySite(diff);
  Table table({"growth", "±", "sure", "before", "after", "samples", "place"},
              6);
  for (const HeapGrowth& growth : growths) {
    if (table.size() == max_rows) break;
    std::vector<std::string> place = PlaceLines(diff.symbols, *growth.site);
    table.Add({Signed(growth.bytes()), Around(growth),
               growth.is_sure() ? "yes" : "no", Bytes(growth.before.bytes),
               Bytes(growth.after.bytes),
               absl::StrCat(growth.before.samples, ", ", growth.after.samples),
               place.front()},
              {place.begin() + 1, place.end()});
  }
  text += growths.empty() ? "  none\n" : table.Text();
  if (growths.size() > table.size()) {
    absl::StrAppend(&text, "  and ", growths.size() - table.size(),
                    " more (--top=N shows more, --json all)\n");
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
