#include "benchmarks/bench_support.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace hakmem::bench {
namespace {

using Clock = std::chrono::steady_clock;

void PrintUsage(const char* program,
                std::initializer_list<Parameter> parameters) {
  std::fprintf(stderr, "usage: %s", program);
  for (const Parameter& parameter : parameters) {
    if (parameter.words.empty()) {
      std::fprintf(stderr, " [%s=%llu]", parameter.name,
                   static_cast<unsigned long long>(parameter.default_value));
      continue;
    }
    const char* before = " [";
    for (const char* word : parameter.words) {
      std::fprintf(stderr, "%s%s", before, word);
      before = "|";
    }
    std::fputs("]", stderr);
  }
  std::fputs("\n", stderr);
}

bool ReadWord(const Parameter& parameter, const char* text) {
  for (std::size_t i = 0; i < parameter.words.size(); ++i) {
    if (std::strcmp(parameter.words[i], text) == 0) {
      *parameter.value = i;
      return true;
    }
  }
  return false;
}

bool ReadNumber(const Parameter& parameter, const char* text) {
  const char* const end = text + std::strlen(text);
  const auto result = std::from_chars(text, end, *parameter.value);
  return result.ec == std::errc() && result.ptr == end &&
         *parameter.value >= parameter.minimum &&
         *parameter.value <= parameter.maximum;
}

void ExplainWrong(const char* program, const Parameter& parameter,
                  const char* text) {
  if (!parameter.words.empty()) {
    std::fprintf(stderr, "%s: '%s' is none of the words below\n", program,
                 text);
    return;
  }
  std::fprintf(stderr,
               "%s: %s must be a whole number from %llu to %llu, not '%s'\n",
               program, parameter.name,
               static_cast<unsigned long long>(parameter.minimum),
               static_cast<unsigned long long>(parameter.maximum), text);
}

// The number of kibibytes after `key` in a file of /proc, as bytes; 0 when the
// kernel does not say.
std::size_t BytesFromProc(const char* path, std::string_view key) {
  char buffer[8192];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::size_t length = 0;
  while (length < sizeof buffer) {
    const ssize_t count = read(file, buffer + length, sizeof buffer - length);
    if (count <= 0) break;
    length += static_cast<std::size_t>(count);
  }
  close(file);
  std::string_view rest(buffer, length);
  const std::size_t at = rest.find(key);
  if (at == std::string_view::npos) return 0;
  rest.remove_prefix(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_of("0123456789"), rest.size()));
  std::size_t kib = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), kib);
  return kib * 1024;
}

rusage Usage(int who) {
  rusage usage = {};
  getrusage(who, &usage);
  return usage;
}

double SystemSeconds(const rusage& usage) {
  return static_cast<double>(usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_stime.tv_usec) * 1e-6;
}

}  // namespace

void ReadArguments(int argc, char** argv,
                   std::initializer_list<Parameter> parameters) {
  int index = 1;
  bool good = static_cast<std::size_t>(argc) <= parameters.size() + 1;
  if (!good) std::fprintf(stderr, "%s: too many arguments\n", argv[0]);
  for (const Parameter& parameter : parameters) {
    *parameter.value = parameter.default_value;
    if (index >= argc || !good) continue;
    const char* const text = argv[index++];
    good = parameter.words.empty() ? ReadNumber(parameter, text)
                                   : ReadWord(parameter, text);
    if (!good) ExplainWrong(argv[0], parameter, text);
  }
  if (good) return;
  PrintUsage(argv[0], parameters);
  std::exit(2);
}

void RejectArguments(const char* program, const char* sentence) {
  std::fprintf(stderr, "%s: %s\n", program, sentence);
  std::exit(2);
}

void* Check(void* block, std::size_t size) {
  if (block == nullptr) {
    std::fprintf(stderr, "out of memory at %zu bytes\n", size);
    std::abort();
  }
  return block;
}

void* Allocate(std::size_t size) { return Check(std::malloc(size), size); }

void Free(void* block) { std::free(block); }

Phase::Phase()
    : system_seconds_(-SystemSeconds(Usage(RUSAGE_SELF)) -
                      SystemSeconds(Usage(RUSAGE_CHILDREN))),
      minor_faults_(-Usage(RUSAGE_SELF).ru_minflt -
                    Usage(RUSAGE_CHILDREN).ru_minflt) {
  start_ = Clock::now();
}

void Phase::Stop() {
  const std::chrono::duration<double> elapsed = Clock::now() - start_;
  seconds_ = elapsed.count();
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    const rusage usage = Usage(who);
    system_seconds_ += SystemSeconds(usage);
    minor_faults_ += usage.ru_minflt;
  }
}

void Report(const Phase& phase, std::uint64_t operations,
            std::initializer_list<Figure> figures) {
  // For people.
  std::printf("%.0f operations per second\n",
              static_cast<double>(operations) / phase.seconds());
  // The kernel's own figure at exit would be that of the process that called
  // exec, too, when this was bigger.
  std::printf(
      "result: {\"operations\": %llu, \"seconds\": %.9f, \"minor_faults\": "
      "%ld, \"system_seconds\": %.6f, \"peak_rss_bytes\": %zu",
      static_cast<unsigned long long>(operations), phase.seconds(),
      phase.minor_faults(), phase.system_seconds(), PeakBytes());
  for (const Figure& figure : figures) {
    const int digits = figure.value == std::floor(figure.value) ? 0 : 6;
    std::printf(", \"%s\": %.*f", figure.key, digits, figure.value);
  }
  std::puts("}");
}

std::size_t ResidentBytes() {
  return BytesFromProc("/proc/self/smaps_rollup", "\nRss:");
}

std::size_t PeakBytes() {
  return BytesFromProc("/proc/self/status", "\nVmHWM:");
}

std::size_t SettledBytes() {
  for (int i = 0; i < 80; ++i) {
    for (std::size_t size = 16; size <= 1024; size *= 2) {
      Free(AllocateTouched(size));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return ResidentBytes();
}

}  // namespace hakmem::bench
