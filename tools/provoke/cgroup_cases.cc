// A small cgroup.
//
// The kernel does not refuse a mapping because the cgroup is full: it kills
// whoever touches a page too many. So `cgroup` has the mapping refused by a
// filter while the cgroup, a real one, is full; and `cgroup_kill`
// is what a program in a small cgroup comes to.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstddef>

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

// Touches page after page until all but `room_bytes` of the limit are in use.
void FillUp(const Cgroup& cgroup, std::size_t room_bytes) {
  constexpr std::size_t kPageBytes = 4096;
  void* const memory = mmap(nullptr, kLimitBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  madvise(memory, kLimitBytes, MADV_NOHUGEPAGE);
  const auto most = static_cast<long long>(kLimitBytes - room_bytes);
  for (std::size_t at = 0; at < kLimitBytes && cgroup.UseBytes() < most;
       at += kPageBytes) {
    static_cast<volatile char*>(memory)[at] = 1;
  }
}

int FailInside(const Cgroup& cgroup) {
  constexpr std::size_t kRoomBytes = 160 << 10;
  if (cgroup.Join() != 0) return kCannotJoin;
  // What telling of the failure needs must be there before.
  mlockall(MCL_CURRENT);
  FillUp(cgroup, kRoomBytes);
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
       "1 GiB in a cgroup of 64 MiB, of which all but 160 KiB are in use",
       nullptr, nullptr, Refused},
      {"cgroup_kill", "", "",
       "a cgroup of 64 MiB is used up, and the kernel kills the process",
       nullptr, nullptr, Killed},
  };
}

}  // namespace hakmem::provoke
