#include "tools/hakmem/child_programs.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace hakmem::tools {

void AddProgramsOf(int process, std::set<std::string>& programs) {
  const std::string folder = absl::StrCat("/proc/", process);
  std::error_code error;
  const std::string program =
      std::filesystem::read_symlink(folder + "/exe", error).string();
  if (!program.empty()) programs.insert(program);
  for (std::filesystem::directory_iterator at(folder + "/task", error), end;
       !error && at != end; at.increment(error)) {
    std::ifstream children(at->path() / "children");
    for (int child = 0; children >> child;) AddProgramsOf(child, programs);
  }
}

}  // namespace hakmem::tools
