#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/base/json_text.h"
#include "allocator/statistics/statistics.h"
#include "tools/hakmem/fleet.h"
#include "tools/hakmem/process_statistics.h"

namespace hakmem::tools {
namespace {

// A control group's path may be long.
constexpr std::size_t kMaxLabelBytes = 512;

std::string Quoted(std::string_view value) {
  // A byte becomes five characters at most.
  char buffer[5 * kMaxLabelBytes + 2];
  JsonText text(buffer, sizeof(buffer));
  return std::string(text.Label(value.substr(0, kMaxLabelBytes)).text());
}

// `,name="value"` of each that there is.
std::string Labels(
    std::initializer_list<std::pair<std::string_view, std::string_view>> all) {
  std::string text;
  for (const auto& [name, value] : all) {
    if (!value.empty()) absl::StrAppend(&text, ",", name, "=", Quoted(value));
  }
  return text;
}

// The families of several texts, each once with the samples of all.
class Families {
 public:
  // A text of PrintStatisticsOpenMetrics; `labels` come behind its own first
  // ones, which begin with `who`.
  void Add(std::string_view text, std::string_view who,
           std::string_view labels) {
    Family* family = nullptr;
    for (const std::string_view line : absl::StrSplit(text, '\n')) {
      const std::vector<std::string_view> words =
          absl::StrSplit(line, absl::MaxSplits(' ', 3));
      if (line.starts_with("# ") && words.size() > 2) {
        family = &FamilyNamed(words[2]);
        if (family->samples.empty()) absl::StrAppend(&family->meta, line, "\n");
        continue;
      }
      const std::size_t at = line.find(who);
      if (family == nullptr || at == std::string_view::npos) continue;
      const std::size_t end = at + who.size();
      absl::StrAppend(&family->samples, line.substr(0, end), labels,
                      line.substr(end), "\n");
    }
  }

  // One sample of a gauge, which may have others.
  void Sample(std::string_view name, std::string_view help,
              std::string_view labels, std::uint64_t value) {
    Family& family = FamilyNamed(name);
    if (family.meta.empty()) {
      family.meta = absl::StrCat("# TYPE ", name, " gauge\n");
      if (name.ends_with("_bytes")) {
        absl::StrAppend(&family.meta, "# UNIT ", name, " bytes\n");
      }
      absl::StrAppend(&family.meta, "# HELP ", name, " ", help, "\n");
    }
    family.samples += name;
    if (!labels.empty()) absl::StrAppend(&family.samples, "{", labels, "}");
    absl::StrAppend(&family.samples, " ", value, "\n");
  }

  std::string Text() const {
    std::string text;
    for (const Family* const family : order_) {
      absl::StrAppend(&text, family->meta, family->samples);
    }
    return text + "# EOF\n";
  }

 private:
  struct Family {
    std::string meta;
    std::string samples;
  };

  Family& FamilyNamed(std::string_view name) {
    const auto found = families_.find(name);
    if (found != families_.end()) return found->second;
    Family& family = families_.emplace(name, Family()).first->second;
    order_.push_back(&family);
    return family;
  }

  std::map<std::string, Family, std::less<>> families_;
  std::vector<const Family*> order_;
};

void AddProcess(const TopRow& row, Families& families) {
  const ProcessStatistics& now = row.now;
  Statistics statistics = now.statistics;
  statistics.variant = now.variant.c_str();
  statistics.version = now.version.c_str();
  const std::string labels =
      Labels({{"cgroup", row.start.origin.cgroup},
              {"container_id", row.start.origin.container_id},
              {"unit", row.start.origin.unit}});
  // The same in all samples.
  const std::string program = now.program.substr(0, kMaxMetricsProgramBytes);
  std::string text;
  PrintStatisticsOpenMetrics(statistics,
                             {.id = now.pid,
                              .program = program,
                              .resident_bytes = row.resident_bytes()},
                             AppendTo(text));
  const std::string who =
      absl::StrCat("pid=\"", now.pid, "\"", Labels({{"program", program}}));
  families.Add(text, who, labels);
  const std::string all = who + labels;
  if (row.live_bytes) {
    families.Sample("hakmem_live_bytes",
                    "live blocks as the heap profile estimates them", all,
                    *row.live_bytes);
  }
  families.Sample("hakmem_process_info", "the hakmem that serves the process",
                  absl::StrCat(all, Labels({{"version", now.version},
                                            {"variant", now.variant}})),
                  1);
}

}  // namespace

std::string FleetAsOpenMetrics(const FleetView& view, std::size_t most) {
  const std::span<const TopRow> shown(view.rows.data(),
                                      std::min(most, view.rows.size()));
  Families families;
  for (const TopRow& row : shown) AddProcess(row, families);
  families.Sample("hakmem_serve_processes",
                  "processes on hakmem that could be read", "",
                  view.rows.size());
  families.Sample("hakmem_serve_processes_left_out",
                  "of these, the smallest, which have no samples here", "",
                  view.rows.size() - shown.size());
  families.Sample("hakmem_serve_processes_forbidden",
                  "processes that may not be read, on hakmem or not", "",
                  view.forbidden);
  return families.Text();
}

}  // namespace hakmem::tools
