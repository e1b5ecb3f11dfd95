// Threads that live for a few hundred blocks each; half of these are freed by
// the thread that waits for them.
#include <thread>
#include <vector>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

void Live(std::vector<void*>& left, std::uint64_t blocks, std::uint64_t seed) {
  Random random(seed);
  std::vector<void*> own(blocks);
  for (void*& block : own) {
    const std::size_t size = random.Between(16, 1040);
    block = Allocate(size);
    Touch(block, size);
  }
  left.assign(own.begin() + static_cast<std::ptrdiff_t>(blocks / 2), own.end());
  own.resize(blocks / 2);
  for (void* block : own) Free(block);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t threads, blocks, seed;
  ReadArguments(argc, argv,
                {{"THREADS", 20'000, &threads},
                 {"BLOCKS", 400, &blocks},
                 {"SEED", 1, &seed}});
  constexpr std::uint64_t kAtOnce = 2;
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < threads; i += kAtOnce) {
    std::vector<void*> left[kAtOnce];
    std::vector<std::thread> alive;
    for (std::uint64_t j = 0; j < kAtOnce; ++j) {
      alive.emplace_back(Live, std::ref(left[j]), blocks, seed + i + j);
    }
    for (std::thread& thread : alive) thread.join();
    for (const auto& list : left) {
      for (void* block : list) Free(block);
    }
  }
  Report("bench_thread_churn", threads * blocks, watch.Seconds());
}
