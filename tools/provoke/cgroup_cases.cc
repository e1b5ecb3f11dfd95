// A small cgroup.
//
// The kernel does not refuse a mapping because the cgroup is full: it kills
// whoever touches a page too many. So `cgroup` has the mapping refused by a
// filter while the cgroup, a real one, has no room for it; and `cgroup_kill`
// is what a program in a small cgroup comes to.
#include <signal.h>
#include <sys/wait.h>

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/provoke/attempt.h"
#include "tools/provoke/cases.h"
#include "tools/provoke/cgroup.h"
#include "tools/provoke/guarded.h"
#include "tools/provoke/mapping_filter.h"

namespace hakmem::provoke {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kGiB = kMiB << 10;
constexpr std::size_t kLimitBytes = 64 * kMiB;
constexpr int kCannotJoin = 77;

int FailInside(const Cgroup& cgroup) {
  if (cgroup.Join() != 0) return kCannotJoin;
  Pile pile;
  pile.Fill({.size = kMiB}, 40 * kMiB, /*touch=*/true);
  if (!RefuseLongMappings()) return kCannotJoin;
  return Try({.size = kGiB}) == nullptr ? 0 : 1;
}

int GrowInside(const Cgroup& cgroup) {
  if (cgroup.Join() != 0) return kCannotJoin;
  Pile pile;
  pile.Fill({.size = kMiB}, kGiB, /*touch=*/true);
  return 1;
}

Verdict InCgroup(int (*child)(const Cgroup&), int wanted_signal) {
  Cgroup cgroup(kLimitBytes);
  if (!cgroup.problem().empty()) return {.not_permitted = cgroup.problem()};
  const int status =
      RunGuarded([&] { return child(cgroup); }, [&] { cgroup.Remove(); });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotJoin) {
    return {.not_permitted = "the cgroup could be made, but not joined"};
  }
  if (WIFSIGNALED(status)) {
    return {.note = absl::StrCat("the process was killed by signal ",
                                 WTERMSIG(status)),
            .provoked = WTERMSIG(status) == wanted_signal};
  }
  return {.provoked = wanted_signal == 0 && WEXITSTATUS(status) == 0};
}

Verdict Refused(const Settings&) { return InCgroup(FailInside, 0); }

Verdict Killed(const Settings&) { return InCgroup(GrowInside, SIGKILL); }

}  // namespace

std::vector<Case> CgroupCases() {
  return {
      {"cgroup", "MapFail", "cgroup",
       "1 GiB in a cgroup of 64 MiB, of which 40 are in use", nullptr, nullptr,
       Refused},
      {"cgroup_kill", "", "",
       "a cgroup of 64 MiB is used up, and the kernel kills the process",
       nullptr, nullptr, Killed},
  };
}

}  // namespace hakmem::provoke
