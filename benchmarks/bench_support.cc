#include "benchmarks/bench_support.h"

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/numbers.h"

namespace hakmem::bench {
namespace {

[[noreturn]] void Usage(const char* program,
                        std::initializer_list<Parameter> parameters) {
  std::fprintf(stderr, "usage: %s", program);
  for (const Parameter& parameter : parameters) {
    std::fprintf(stderr, " [%s=%llu]", parameter.name,
                 static_cast<unsigned long long>(parameter.default_value));
  }
  std::fputs("\n", stderr);
  std::exit(2);
}

// getrusage would count the memory of the process that called exec, too.
long PeakKib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    long kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib;
  }
  return 0;
}

}  // namespace

void ReadArguments(int argc, char** argv,
                   std::initializer_list<Parameter> parameters) {
  if (static_cast<std::size_t>(argc) > parameters.size() + 1) {
    Usage(argv[0], parameters);
  }
  int index = 1;
  for (const Parameter& parameter : parameters) {
    *parameter.value = parameter.default_value;
    if (index < argc && !absl::SimpleAtoi(argv[index], parameter.value)) {
      Usage(argv[0], parameters);
    }
    ++index;
  }
}

void* Allocate(std::size_t size) {
  void* const block = std::malloc(size);
  if (block == nullptr) {
    std::fprintf(stderr, "out of memory at %zu bytes\n", size);
    std::abort();
  }
  return block;
}

void Free(void* block) { std::free(block); }

void Report(const char* name, std::uint64_t operations, double seconds) {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%s: %.5f Mops/s, peak %ld KiB, %ld minor faults\n", name,
              static_cast<double>(operations) / seconds / 1e6, PeakKib(),
              usage.ru_minflt);
}

}  // namespace hakmem::bench
