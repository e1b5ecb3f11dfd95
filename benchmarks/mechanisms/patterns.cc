#include "benchmarks/mechanisms/patterns.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hakmem::bench {
namespace {

std::uint64_t g_faults = 0;
std::uint64_t g_operations = 0;

// What a thread does until the next one runs.
constexpr std::uint64_t kTurnUs = 100;

// The number after `key` in a file of /proc, without an allocation.
std::uint64_t NumberFromProc(const char* path, const char* key) {
  char text[8192];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  std::size_t length = 0;
  while (file >= 0 && length < sizeof text - 1) {
    const ssize_t count = read(file, text + length, sizeof text - 1 - length);
    if (count <= 0) break;
    length += static_cast<std::size_t>(count);
  }
  if (file >= 0) close(file);
  text[length] = '\0';
  const char* const found = std::strstr(text, key);
  if (found == nullptr) {
    std::fprintf(stderr, "%s has no %s\n", path, key);
    std::exit(EXIT_FAILURE);
  }
  return std::strtoull(found + std::strlen(key), nullptr, 10);
}

// What was begun by the real clock ends, whenever that was.
void BeginInterval() {
  for (int i = 0; i < 4; ++i) {
    PassUs(10'000'000);
    Idle(1);
  }
}

}  // namespace

void PrintFigure(const char* key, std::uint64_t value) {
  dprintf(STDOUT_FILENO, "figure %s %llu\n", key,
          static_cast<unsigned long long>(value));
}

std::uint64_t HeldKiB() {
  return NumberFromProc("/proc/self/smaps_rollup", "\nAnonymous:");
}

std::uint64_t VirtualPeakKiB() {
  return NumberFromProc("/proc/self/status", "\nVmPeak:");
}

std::uint64_t MinorFaults() {
  rusage usage{}, children{};
  getrusage(RUSAGE_SELF, &usage);
  getrusage(RUSAGE_CHILDREN, &children);
  return static_cast<std::uint64_t>(usage.ru_minflt + children.ru_minflt);
}

void Idle(std::uint64_t intervals) {
  for (std::uint64_t i = 0; i < intervals; ++i) {
    PassUs(250'000);
    for (int j = 0; j < 600; ++j) Free(Allocate(100));
  }
}

void CountOperations(std::uint64_t count) { g_operations += count; }

// Callgrind begins and ends to count where this is called and returns.
extern "C" __attribute__((noinline)) void Measured_pattern(const Work& work,
                                                           std::size_t i) {
  const std::uint64_t before = MinorFaults();
  work.call(work.what, i);
  g_faults += MinorFaults() - before;
}

Crew::Crew(std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) {
    may_run_.push_back(std::make_unique<std::binary_semaphore>(0));
  }
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this, i] { Live(i); });
  }
}

void Crew::Live(std::size_t i) {
  for (;;) {
    may_run_[i]->acquire();
    if (work_.call == nullptr) return;
    work_.call(work_.what, i);
    has_run_.release();
  }
}

void Crew::Turn(std::size_t i) {
  PassUs(kTurnUs);
  may_run_[i]->release();
  has_run_.acquire();
}

void Crew::End() {
  work_ = {};
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    may_run_[i]->release();
    threads_[i].join();
  }
  threads_.clear();
}

int RunPattern(int argc, char** argv, const std::vector<Pattern>& patterns) {
  // Whether the machine has huge pages is chance.
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  if (StopClock()) BeginInterval();
  for (const Pattern& pattern : patterns) {
    if (argc != 2 || std::strcmp(argv[1], pattern.name) != 0) continue;
    pattern.run();
    PrintFigure("operations", g_operations);
    PrintFigure("faults", g_faults);
    PrintFigure("peak", NumberFromProc("/proc/self/status", "\nVmHWM:") -
                            NumberFromProc("/proc/self/status", "\nRssFile:"));
    return EXIT_SUCCESS;
  }
  std::fprintf(stderr, "usage: %s PATTERN, one of", argv[0]);
  for (const Pattern& pattern : patterns) {
    std::fprintf(stderr, " %s", pattern.name);
  }
  std::fputs("\n", stderr);
  return 2;
}

}  // namespace hakmem::bench
