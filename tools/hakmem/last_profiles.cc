#include "tools/hakmem/last_profiles.h"

#include <algorithm>
#include <fstream>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/hakmem/child.h"
#include "tools/hakmem/heap_process.h"
#include "tools/hakmem/heap_report.h"

namespace hakmem::tools {

void LastProfiles::Look(int process) {
  if (path_.empty()) return;
  ++looks_;
  for (const int pid : ProcessesFrom(process)) {
    HeapModules modules;
    const absl::StatusOr<HeapProfiles> profiles =
        ReadHeapOfProcess(absl::StrCat(pid), modules);
    if (!profiles.ok()) continue;
    by_process_[pid] = {looks_, HeapAsLines(*profiles, modules)};
  }
  while (by_process_.size() > kMost) {
    by_process_.erase(std::ranges::min_element(
        by_process_, {}, [](const auto& last) { return last.second.look; }));
  }
  std::ofstream(path_, std::ios::binary | std::ios::trunc) << Lines();
}

std::string LastProfiles::Lines() const {
  std::string lines;
  for (const auto& [process, last] : by_process_) lines += last.lines;
  return lines;
}

}  // namespace hakmem::tools
