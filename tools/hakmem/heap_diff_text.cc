// The comparison of two heap profiles for a terminal.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

std::string Rounded(double bytes) {
  return absl::StrCat("±",
                      Bytes(static_cast<std::uint64_t>(std::llround(bytes))));
}

std::string WhoseText(const HeapProfiles& profiles) {
  return profiles.last.size() == 1
             ? ProcessName(profiles.last.front())
             : Count(profiles.last.size(), "process", "processes");
}

}  // namespace

std::string HeapDiffAsText(const HeapDiff& diff, std::size_t max_rows) {
  const HeapGrowth total = TotalGrowth(diff);
  std::string text = absl::StrCat(
      Signed(total.bytes()), " ", HeapWhen(diff.by), ": ",
      Bytes(total.before.bytes), " in ", WhoseText(diff.before), ", then ",
      Bytes(total.after.bytes), " in ", WhoseText(diff.after),
      "; ± holds for 9 estimates in 10\n\nGrowth by places\n");
  const std::vector<HeapGrowth> growths = GrowthBySite(diff);
  Table table({"growth", "±", "before", "after", "samples", "place"}, 5);
  for (const HeapGrowth& growth : growths) {
    if (table.size() == max_rows) break;
    std::vector<std::string> place = PlaceLines(diff.symbols, *growth.site);
    table.Add({Signed(growth.bytes()),
               Rounded(kErrorsAround * growth.StandardErrorBytes()),
               Bytes(growth.before.bytes), Bytes(growth.after.bytes),
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
