// Start-up and exit: /bin/true, COUNT times, with the environment inherited,
// and so with the same preloaded allocator.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t count;
  ReadArguments(argc, argv, {{"COUNT", 500, &count}});
  char name[] = "true";
  char* const arguments[] = {name, nullptr};
  Phase phase;
  for (std::uint64_t i = 0; i < count; ++i) {
    pid_t child = 0;
    int status = -1;
    if (posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments,
                    environ) != 0 ||
        waitpid(child, &status, 0) != child || status != 0) {
      std::fprintf(stderr, "/bin/true failed: status %d\n", status);
      return EXIT_FAILURE;
    }
  }
  phase.Stop();
  Report(phase, count);
}
