// Threads that write to their own small blocks again and again. It takes much
// longer when blocks of two threads lie in one line of the cache. After
// cache-thrash (active: the allocator puts fresh blocks of two threads side by
// side) and cache-scratch (passive: a block that came from another thread stays
// with the thread that freed it, beside that thread's other blocks) of
// Berger, McKinley, Blumofe & Wilson, "Hoard: A Scalable Memory Allocator for
// Multithreaded Applications" (ASPLOS 2000), section 4. Processors that share
// their first cache, as two hardware threads of a core do, show no difference.
#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

enum : std::uint64_t { kActive, kPassive };

// `times` over all bytes of the block.
void Write(void* block, std::size_t size, std::uint64_t times) {
  auto* const bytes = static_cast<volatile unsigned char*>(block);
  for (std::uint64_t i = 0; i < times; ++i) {
    for (std::size_t at = 0; at < size; ++at) {
      bytes[at] = static_cast<unsigned char>(bytes[at] + 1);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t mode, threads, iterations, writes, size;
  ReadArguments(argc, argv,
                {{"MODE", {"active", "passive"}, &mode},
                 {"THREADS", 2, &threads, 1, 512},
                 {"ITERATIONS", 100'000, &iterations},
                 {"WRITES", 100, &writes},
                 {"SIZE", 8, &size}});
  std::vector<void*> gifts(threads);
  if (mode == kPassive) {
    for (void*& gift : gifts) gift = AllocateTouched(size);
  }
  const Phase phase = MeasureThreads(
      threads, [&](std::uint64_t i) { Free(gifts[i]); },
      [&](std::uint64_t) {
        for (std::uint64_t i = 0; i < iterations; ++i) {
          void* const block = Allocate(size);
          Write(block, size, writes);
          Free(block);
        }
      },
      [](std::uint64_t) {});
  Report(phase, threads * iterations);
}
