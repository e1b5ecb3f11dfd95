// Buffers that grow up to MAX bytes and then start anew, eight side by side: by
// doubling, as a vector does, or by a few bytes, as a careless string does.
#include <cstdlib>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

enum : std::uint64_t { kDoubling, kSteps };

struct Buffer {
  void* block = nullptr;
  std::size_t size = 0;
};

void Grow(Buffer& buffer, std::size_t size) {
  buffer.block = Check(std::realloc(buffer.block, size), size);
  // What is new; the rest was written before.
  TouchPages(static_cast<char*>(buffer.block) + buffer.size,
             size - buffer.size);
  buffer.size = size;
}

void Restart(Buffer& buffer) {
  Free(buffer.block);
  buffer = {};
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t mode, iterations, maximum, seed;
  ReadArguments(argc, argv,
                {{"MODE", {"doubling", "steps"}, &mode},
                 {"ITERATIONS", 10'000'000, &iterations},
                 {"MAX", 65'536, &maximum},
                 {"SEED", 1, &seed, 0}});
  Random random(seed);
  Buffer buffers[8];
  const auto work = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      Buffer& buffer = buffers[random.Below(8)];
      const std::size_t step = random.Between(8, 64);
      if (buffer.size >= maximum) Restart(buffer);
      const bool add = mode == kSteps || buffer.size == 0;
      Grow(buffer, add ? buffer.size + step : buffer.size * 2);
    }
  };
  work(iterations / 8);
  Phase phase;
  work(iterations);
  phase.Stop();
  for (Buffer& buffer : buffers) Restart(buffer);
  Report(phase, iterations);
}
