#include "tools/hakmem/child_programs.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace hakmem::tools {

std::vector<int> ProcessesFrom(int process) {
  std::vector<int> all = {process};
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::error_code error;
    for (std::filesystem::directory_iterator
             at(absl::StrCat("/proc/", all[i], "/task"), error),
         end;
         !error && at != end; at.increment(error)) {
      std::ifstream children(at->path() / "children");
      for (int child = 0; children >> child;) all.push_back(child);
    }
  }
  return all;
}

void AddProgramsOf(int process, std::set<std::string>& programs) {
  for (const int each : ProcessesFrom(process)) {
    std::error_code error;
    const std::string program = std::filesystem::read_symlink(
                                    absl::StrCat("/proc/", each, "/exe"), error)
                                    .string();
    if (!program.empty()) programs.insert(program);
  }
}

}  // namespace hakmem::tools
