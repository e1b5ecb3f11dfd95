// Runs a command in a memory cgroup of its own.
//
//   in_cgroup BYTES COMMAND [ARGUMENT…]
//
// Exit status: the command's, 128 and the signal's number if one killed it, 77
// when this machine lets us make no cgroup (standard error says why).
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "tools/provoke/cgroup.h"
#include "tools/provoke/guarded.h"

namespace {

constexpr int kNotPermitted = 77;

}  // namespace

int main(int argc, char** argv) {
  std::size_t bytes = 0;
  if (argc < 3 || !absl::SimpleAtoi(argv[1], &bytes)) {
    std::fputs("usage: in_cgroup BYTES COMMAND [ARGUMENT…]\n", stderr);
    return 2;
  }
  hakmem::provoke::Cgroup cgroup(bytes);
  if (!cgroup.problem().empty()) {
    std::fprintf(stderr, "in_cgroup: %s\n", cgroup.problem().c_str());
    return kNotPermitted;
  }
  const int status = hakmem::provoke::RunGuarded(
      [&] {
        if (cgroup.Join() != 0) return kNotPermitted;
        execvp(argv[2], argv + 2);
        std::perror(argv[2]);
        return 127;
      },
      [&] { cgroup.Remove(); });
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
