// Knows a block's address without a pointer to the block. The first case counts
// pairs of blocks, the others runs in which what was seen in one run holds in
// the next.
// attack next: the next malloc returns what follows in memory
// expect next: succeeds
// expect[hardened debug] next: 30..48 %
// attack same: a block of 64 bytes is where it was in the last run
// expect same: prevented
// attack spray: where it was is now in 1 GiB of blocks of 64 MiB
// (By chance it is in about one of 20,000 runs: the kernel places the blocks.)
// expect spray: 0..1 %
// attack from_code: its distance from a static variable is the last run's
// expect from_code: prevented
// attack from_libc: the distance of 200 KB from libc is the last run's
// expect from_libc: prevented
// attack from_block: the distance of 200 KB from 64 bytes is the last run's
// expect from_block: succeeds
#include <sys/wait.h>

#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

struct Seen {
  std::uintptr_t small, large, code, libc;
  std::uintptr_t sprayed[16];
};
constexpr std::uintptr_t kSlabBytes = 65536;
constexpr std::size_t kSprayBytes = std::size_t{64} << 20;

std::uintptr_t AddressOf(const volatile void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

Seen Look(bool spray) {
  Seen seen = {};
  seen.small = AddressOf(Allocate(kSmall));
  seen.large = AddressOf(Allocate(kLarge));
  seen.code = AddressOf(&attacker_at_work);
  seen.libc = AddressOf(reinterpret_cast<const void*>(&puts));
  if (!spray) return seen;
  for (auto& sprayed : seen.sprayed) sprayed = AddressOf(Allocate(kSprayBytes));
  return seen;
}

// What a new process sees.
Seen LookInNewRun(const char* how) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execl("/proc/self/exe", "address_prediction", how, "look", nullptr);
    _exit(1);
  }
  close(ends[1]);
  Seen seen;
  if (read(ends[0], &seen, sizeof seen) != sizeof seen) abort();
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return seen;
}

bool Holds(const char* how, const Seen& last, const Seen& seen) {
  if (Is(how, "same")) return seen.small == last.small;
  if (Is(how, "from_code")) {
    return seen.small - seen.code == last.small - last.code;
  }
  if (Is(how, "from_libc")) {
    return seen.large - seen.libc == last.large - last.libc;
  }
  if (Is(how, "from_block")) {
    // Where in its slab the small one lies need not be the same.
    return seen.large - seen.small == last.large - last.small ||
           seen.large - seen.small / kSlabBytes * kSlabBytes ==
               last.large - last.small / kSlabBytes * kSlabBytes;
  }
  const std::uintptr_t guess = last.sprayed[8];
  return std::any_of(seen.sprayed, seen.sprayed + 16, [&](std::uintptr_t at) {
    return guess >= at && guess < at + kSprayBytes;
  });
}

[[noreturn]] void CompareRuns(const char* how) {
  const int tries = 10;
  int successes = 0;
  Seen last = LookInNewRun(how);
  for (int i = 0; i < tries; ++i) {
    const Seen seen = LookInNewRun(how);
    if (Holds(how, last, seen)) ++successes;
    last = seen;
  }
  SucceededIn(successes, tries);
}

[[noreturn]] void CompareNext() {
  Blocks<256> blocks(kSmall);
  const std::size_t stride = blocks.Stride();
  const int tries = 1000;
  int successes = 0;
  const char* last = Allocate(kSmall);
  for (int i = 0; i < tries; ++i) {
    const char* const block = Allocate(kSmall);
    if (block == last + stride || block == last - stride) ++successes;
    last = block;
  }
  SucceededIn(successes, tries);
}

}  // namespace

int main(int argc, char** argv) {
  Begin();
  if (Is(argv[1], "next")) CompareNext();
  if (argc == 2) CompareRuns(argv[1]);
  const Seen seen = Look(Is(argv[1], "spray"));
  return write(STDOUT_FILENO, &seen, sizeof seen) == sizeof seen ? 0 : 1;
}
