// malloc and free by size, pattern and number of threads, on Google Benchmark:
// where in the space of these an allocator is slow. Preload the allocator:
//   LD_PRELOAD=… bazel-bin/benchmarks/micro/micro --benchmark_filter=Batch
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "benchmark/benchmark.h"

namespace {

constexpr std::int64_t kBatch = 256;
constexpr std::size_t kSlots = 256;

// The first and the last byte are written, as a program would.
void* Allocate(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) std::abort();
  auto* const bytes = static_cast<volatile char*>(block);
  bytes[0] = 1;
  bytes[size - 1] = 1;
  // Else the compiler may leave out a malloc together with its free.
  benchmark::DoNotOptimize(block);
  return block;
}

// An item is a malloc and its free.
void Count(benchmark::State& state, std::int64_t items_each) {
  const std::int64_t items = state.iterations() * items_each;
  state.SetItemsProcessed(items);
  state.SetBytesProcessed(items * state.range(0));
}

void Pair(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) std::free(Allocate(size));
  Count(state, 1);
}

void Batch(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  std::vector<void*> blocks(kBatch);
  for (auto _ : state) {
    for (void*& block : blocks) block = Allocate(size);
    for (void* block : blocks) std::free(block);
  }
  Count(state, kBatch);
}

// Replaces random blocks by others of half the size to all of it.
void Random(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  std::vector<void*> slots(kSlots);
  std::uint64_t random = 1 + static_cast<std::uint64_t>(state.thread_index());
  for (auto _ : state) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    void*& slot = slots[random >> 56];
    std::free(slot);
    slot = Allocate(size - ((random >> 32) & (size / 2 - 1)));
  }
  for (void* block : slots) std::free(block);
  Count(state, 1);
}

// Powers of two, each of another way through an allocator: tiny, small, page,
// pages, a span of its own.
void SizesAndThreads(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t size :
       {16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10}) {
    benchmark->Arg(size);
  }
  benchmark->ArgName("size")->ThreadRange(1, 4)->UseRealTime();
}

BENCHMARK(Pair)->Apply(SizesAndThreads);
BENCHMARK(Batch)->Apply(SizesAndThreads);
BENCHMARK(Random)->Apply(SizesAndThreads);

}  // namespace
