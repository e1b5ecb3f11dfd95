// How long a call takes that fails: of a size that cannot be, and of memory
// that the kernel refuses (RLIMIT_AS). Preload the allocator, with the trace to
// a file, which takes 256 lines and then 100 a second:
//   HAKMEM_ACE_TRACE=/tmp/trace LD_PRELOAD=…
//       bazel-bin/benchmarks/failing/failing_path [CALLS]
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kLimitBytes = 512 * kMiB;

// Some callers, as a real program has.
__attribute__((noinline)) void* Allocate(std::size_t size, int depth) {
  void* volatile block =
      depth == 0 ? std::malloc(size) : Allocate(size, depth - 1);
  return block;
}

void Measure(const char* name, std::size_t size, std::size_t calls) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> microseconds(calls);
  for (double& each : microseconds) {
    const Clock::time_point start = Clock::now();
    void* block = Allocate(size, 10);
    each =
        std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (block != nullptr) {
      std::fprintf(stderr, "%s: %zu bytes were served\n", name, size);
      std::exit(1);
    }
  }
  std::sort(microseconds.begin(), microseconds.end());
  std::printf(
      "%-12s %8zu calls  median %8.2f us  99 %% %8.2f us  max %9.2f us\n", name,
      calls, microseconds[calls / 2], microseconds[calls * 99 / 100],
      microseconds.back());
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t calls =
      argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000;
  if (calls == 0) {
    std::fprintf(stderr, "usage: failing_path [CALLS]\n");
    return 2;
  }
  Measure("too large", std::size_t{1} << 60, calls);
  const rlimit limit = {kLimitBytes, kLimitBytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) {
    std::perror("setrlimit");
    return 1;
  }
  Measure("refused", 2 * kLimitBytes, calls);
  return 0;
}
