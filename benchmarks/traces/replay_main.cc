// replay TRACE [REPEATS]: a recorded program's calls of malloc, done again by
// this process's malloc. One replay goes before those that are measured.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "benchmarks/traces/mapped_memory.h"
#include "benchmarks/traces/plan.h"
#include "benchmarks/traces/player.h"

namespace hakmem::traces {
namespace {

constexpr int kBadInput = 2;
constexpr std::uint64_t kMaxRepeats = 1'000'000;

int Complain(const char* path, const char* error) {
  std::fprintf(stderr, "replay: %s: %s\n", path, error);
  return kBadInput;
}

bool ParseRepeats(std::string_view text, std::uint64_t& repeats) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, repeats);
  return error == std::errc() && rest == end && repeats > 0 &&
         repeats <= kMaxRepeats;
}

int Replay(const char* path, std::uint64_t repeats) {
  Plan plan;
  {
    MappedFile file;
    const char* error = file.Open(path);
    if (error == nullptr) error = plan.Load(file.bytes());
    if (error != nullptr) return Complain(path, error);
  }
  Player<ProcessHeap> player(plan);
  if (!player.Prepare()) return Complain(path, "no memory for its blocks");
  Played total;
  total.error = player.Play().error;
  for (std::uint64_t i = 0; i < repeats && total.error == nullptr; ++i) {
    total += player.Play();
  }
  if (total.error != nullptr) {
    std::fprintf(stderr, "replay: %s: %s\n", path, total.error);
    return 1;
  }
  std::printf(
      "result: {\"operations\": %llu, \"seconds\": %.6f, \"minor_faults\": "
      "%llu, \"system_seconds\": %.6f, \"live_bytes\": %llu}\n",
      static_cast<unsigned long long>(plan.header().events * repeats),
      total.seconds, static_cast<unsigned long long>(total.minor_faults),
      total.system_seconds, static_cast<unsigned long long>(plan.peak_bytes()));
  return 0;
}

}  // namespace
}  // namespace hakmem::traces

int main(int argc, char** argv) {
  std::uint64_t repeats = 1;
  if (argc < 2 || argc > 3 ||
      (argc == 3 && !hakmem::traces::ParseRepeats(argv[2], repeats))) {
    std::fputs("usage: replay TRACE [REPEATS=1, at most 1000000]\n", stderr);
    return hakmem::traces::kBadInput;
  }
  return hakmem::traces::Replay(argv[1], repeats);
}
