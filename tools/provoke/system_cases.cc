// Settings of the whole system, changed for some milliseconds: only on request.
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/provoke/attempt.h"
#include "tools/provoke/cases.h"
#include "tools/provoke/guarded.h"
#include "tools/provoke/process_facts.h"

namespace hakmem::provoke {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kTiB = kKiB << 30;
// What everybody else may still ask for meanwhile; what is asked for exceeds
// it.
constexpr std::size_t kHeadroom = 6 * kTiB;
constexpr std::size_t kRequest = 7 * kTiB;
constexpr int kCannotSet = 77;

constexpr char kMode[] = "/proc/sys/vm/overcommit_memory";
constexpr char kRatio[] = "/proc/sys/vm/overcommit_ratio";
constexpr char kKbytes[] = "/proc/sys/vm/overcommit_kbytes";

// The three settings, as they were. All text is made beforehand: Restore may
// run while nothing can be allocated.
class Overcommit {
 public:
  Overcommit()
      : mode_(absl::StrCat(NumberIn(kMode, ""))),
        // A ratio is in force exactly when kbytes is 0, and writing either
        // clears the other.
        by_ratio_(NumberIn(kKbytes, "") == 0),
        amount_(absl::StrCat(NumberIn(by_ratio_ ? kRatio : kKbytes, ""))) {}

  int Restrict() const {
    const auto committed =
        static_cast<std::size_t>(NumberIn("/proc/meminfo", "Committed_AS:"));
    const std::string most = absl::StrCat(committed + kHeadroom / kKiB);
    const int error = WriteFile(kKbytes, most.c_str());
    return error != 0 ? error : WriteFile(kMode, "2");
  }
  void Restore() const {
    WriteFile(kMode, mode_.c_str());
    WriteFile(by_ratio_ ? kRatio : kKbytes, amount_.c_str());
  }

 private:
  std::string mode_;
  bool by_ratio_;
  std::string amount_;
};

Verdict OvercommitRefuses(const Settings& settings) {
  if (!settings.system) {
    return {.not_permitted =
                "it changes vm.overcommit_memory of the whole system for some "
                "milliseconds; --system permits that"};
  }
  if (access(kMode, W_OK) != 0 || access(kKbytes, W_OK) != 0) {
    return {.not_permitted = "vm.overcommit_memory cannot be written"};
  }
  const Overcommit old;
  // The child restores them too, in case this process is killed.
  const int status = RunGuarded(
      [&old] {
        if (old.Restrict() != 0) {
          old.Restore();
          return kCannotSet;
        }
        Try({.size = kRequest});
        old.Restore();
        return TheLog().failed == 1 ? 0 : 1;
      },
      [&old] { old.Restore(); });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotSet) {
    return {.not_permitted = "vm.overcommit_memory cannot be changed"};
  }
  return {.provoked = WIFEXITED(status) && WEXITSTATUS(status) == 0};
}

}  // namespace

std::vector<Case> SystemCases() {
  return {
      {"overcommit", "MapFail", "overcommit",
       "7 TiB where vm.overcommit_memory=2 leaves 6 (needs --system)", nullptr,
       nullptr, OvercommitRefuses},
  };
}

}  // namespace hakmem::provoke
