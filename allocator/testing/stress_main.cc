// Runs the stress workload on whatever malloc the process has: linked in,
// preloaded, or libc's.
//
//   stress [--seconds=S] [--ops=N] [--threads=N] [--seed=N] [--max_mib=N] …
//
// Ends at the first bound reached; with neither --seconds nor --ops it goes on
// until SIGINT or SIGTERM. Status 0: every byte of every block was as written.
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "allocator/testing/stress_workload.h"

ABSL_FLAG(double, seconds, 0, "how long to run; 0: no bound");
ABSL_FLAG(std::uint64_t, ops, 0,
          "operations, of all threads together; 0: no bound");
ABSL_FLAG(unsigned, threads, 4, "threads at any one time");
ABSL_FLAG(std::uint64_t, seed, 1, "of all random choices");
ABSL_FLAG(std::uint64_t, max_mib, 512, "most memory in live blocks, in MiB");
ABSL_FLAG(
    std::uint64_t, life_ops, 10'000,
    "operations after which a thread is replaced by a new one, on average; "
    "0: never");
ABSL_FLAG(std::uint64_t, fork_every, 20'000,
          "operations of a thread between two forks, on average; 0: never");
ABSL_FLAG(bool, allow_failures, false,
          "count allocations that return null instead of ending");

// C23 has these; glibc 2.36 and some allocators do not.
extern "C" {
[[gnu::weak]] void free_sized(void* block, std::size_t size);
[[gnu::weak]] void free_aligned_sized(void* block, std::size_t alignment,
                                      std::size_t size);
// What code with allocation tokens calls; hakmem has these alone.
[[gnu::weak]] void*
__alloc_token_malloc(  // NOLINT(bugprone-reserved-identifier)
    std::size_t size, std::size_t token);
[[gnu::weak]] void*
__alloc_token_calloc(  // NOLINT(bugprone-reserved-identifier)
    std::size_t count, std::size_t size, std::size_t token);
}

namespace hakmem::stress {
namespace {

// A block that is replaced in every round of a thread's destructors, so that
// some are allocated and freed before and some after the allocator's own hook.
struct ExitBlock {
  int round;
  unsigned char mark[100];
};
pthread_key_t exit_key;

void PutExitBlock(int round) {
  auto* const block = static_cast<ExitBlock*>(std::malloc(sizeof(ExitBlock)));
  if (block == nullptr) return;
  block->round = round;
  std::memset(block->mark, 0xe0 + round, sizeof(block->mark));
  pthread_setspecific(exit_key, block);
}

void OnExitRound(void* argument) {
  auto* const block = static_cast<ExitBlock*>(argument);
  const int round = block->round;
  for (const unsigned char byte : block->mark) {
    if (byte == 0xe0 + round) continue;
    std::fputs("stress: FAILED: a block was damaged at thread exit\n", stderr);
    std::abort();
  }
  std::free(block);
  if (round < PTHREAD_DESTRUCTOR_ITERATIONS) PutExitBlock(round + 1);
}

class MallocTarget final : public Target {
 public:
  // Half of the sizes have tokens.
  void* Allocate(std::size_t size) override {
    return HasToken(size) ? __alloc_token_malloc(size, size % kTokens)
                          : std::malloc(size);
  }
  void* AllocateZeroed(std::size_t count, std::size_t size) override {
    return HasToken(size) ? __alloc_token_calloc(count, size, size % kTokens)
                          : std::calloc(count, size);
  }
  void* AllocateAligned(std::size_t alignment, std::size_t size) override {
    // The three ways, told apart by what is at hand.
    if (size % 3 == 0) return memalign(alignment, size);
    if (size % alignment == 0) return std::aligned_alloc(alignment, size);
    void* block = nullptr;
    return posix_memalign(&block, alignment, size) == 0 ? block : nullptr;
  }
  void* Reallocate(void* block, std::size_t size) override {
    return std::realloc(block, size);
  }
  void Free(void* block) override { std::free(block); }
  void FreeSized(void* block, std::size_t size,
                 std::size_t alignment) override {
    if (alignment == 0 && free_sized != nullptr) {
      free_sized(block, size);
    } else if (alignment != 0 && free_aligned_sized != nullptr) {
      free_aligned_sized(block, alignment, size);
    } else {
      std::free(block);
    }
  }
  std::size_t UsableSize(void* block) override {
    return malloc_usable_size(block);
  }
  pid_t Fork() override { return fork(); }
  void LeaveThread() override { PutExitBlock(1); }

 private:
  static constexpr std::size_t kTokens = 8;

  static bool HasToken(std::size_t size) {
    return __alloc_token_malloc != nullptr && size / kTokens % 2 != 0;
  }
};

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void RequestStop(int /*signal*/) {
  stop_requested.store(true, std::memory_order_relaxed);
}

Options OptionsFromFlags() {
  Options options;
  options.seed = absl::GetFlag(FLAGS_seed);
  options.threads = absl::GetFlag(FLAGS_threads);
  options.operations = absl::GetFlag(FLAGS_ops);
  options.seconds = absl::GetFlag(FLAGS_seconds);
  options.max_bytes = absl::GetFlag(FLAGS_max_mib) << 20;
  options.life_operations = absl::GetFlag(FLAGS_life_ops);
  options.fork_every = absl::GetFlag(FLAGS_fork_every);
  options.allow_failures = absl::GetFlag(FLAGS_allow_failures);
  return options;
}

int Main() {
  const Options options = OptionsFromFlags();
  if (options.threads == 0 || options.max_bytes == 0 || options.seconds < 0) {
    std::fputs(
        "stress: --threads and --max_mib must be above 0, --seconds "
        "not below\n",
        stderr);
    return 2;
  }
  if (const int error = pthread_key_create(&exit_key, OnExitRound);
      error != 0) {
    std::fprintf(stderr, "stress: pthread_key_create: %s\n",
                 std::strerror(error));
    return 2;
  }
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);

  MallocTarget target;
  const Outcome outcome = RunStress(options, target, stop_requested);
  const Counters& counters = outcome.counters;
  std::printf("stress: ok: seed %" PRIu64 ", %" PRIu64
              " operations in %.1f s by %" PRIu64 " threads: %" PRIu64
              " allocations, %" PRIu64 " reallocations, %" PRIu64
              " frees (%" PRIu64 " of other threads' blocks), %" PRIu64
              " forks, %" PRIu64 " failures, peak %zu MiB live\n",
              options.seed, counters.operations, outcome.seconds,
              counters.threads, counters.allocations, counters.reallocations,
              counters.frees, counters.foreign_frees, counters.forks,
              counters.failures, outcome.peak_bytes >> 20);
  return 0;
}

}  // namespace
}  // namespace hakmem::stress

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Allocates, checks, hands over and frees blocks on many threads, with "
      "thread churn and fork, on the process's malloc.");
  absl::ParseCommandLine(argc, argv);
  return hakmem::stress::Main();
}
