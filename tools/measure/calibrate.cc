// Tells how fast and how steady the processor is just now.
//
//   calibrate
//
// Prints a JSON array: the seconds that each of a few runs of one fixed loop
// took. The loop touches no memory and calls nothing, so whatever makes one
// run longer than another comes from outside: another process, another guest
// of the same host, the clock frequency.
#include <time.h>

#include <cstdint>
#include <cstdio>

namespace {

constexpr int kRuns = 5;
constexpr int kSteps = 4'000'000;

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) / 1e9;
}

// Each step needs the one before, so that no compiler shortens the loop.
std::uint64_t Loop(std::uint64_t state) {
  for (int step = 0; step < kSteps; ++step) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
  }
  return state;
}

}  // namespace

int main() {
  volatile std::uint64_t state = 88172645463325252U;
  std::printf("[");
  for (int run = 0; run < kRuns; ++run) {
    const double begin = Now();
    state = Loop(state);
    std::printf("%s%.9f", run == 0 ? "" : ", ", Now() - begin);
  }
  std::printf("]\n");
  return 0;
}
