#include "tools/hakmem/process_activity.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hakmem::tools {
namespace {

// "State:\tS (sleeping)", "voluntary_ctxt_switches:\t12".
void AddLine(std::string_view line, ProcessActivity& activity) {
  if (absl::ConsumePrefix(&line, "State:")) {
    ++activity.threads;
    // D: it sleeps in the kernel, and goes on soon.
    const std::string_view state = absl::StripLeadingAsciiWhitespace(line);
    if (state.starts_with('R') || state.starts_with('D')) ++activity.running;
    return;
  }
  std::uint64_t count = 0;
  if ((absl::ConsumePrefix(&line, "voluntary_ctxt_switches:") ||
       absl::ConsumePrefix(&line, "nonvoluntary_ctxt_switches:")) &&
      absl::SimpleAtoi(line, &count)) {
    activity.switches += count;
  }
}

}  // namespace

ProcessActivity ReadActivity(std::uint64_t pid) {
  ProcessActivity activity;
  std::error_code error;
  for (std::filesystem::directory_iterator
           task(absl::StrCat("/proc/", pid, "/task"), error),
       end;
       !error && task != end; task.increment(error)) {
    std::ifstream file(task->path() / "status");
    for (std::string line; std::getline(file, line);) AddLine(line, activity);
  }
  return activity;
}

bool HasSlept(const ProcessActivity& before, const ProcessActivity& now) {
  return now.threads != 0 && now.threads == before.threads &&
         now.running == 0 && before.running == 0 &&
         now.switches == before.switches;
}

}  // namespace hakmem::tools
