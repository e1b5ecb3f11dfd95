// Pairs of threads: one allocates, the other frees, with a bounded ring
// between them.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

class Ring {
 public:
  explicit Ring(std::size_t capacity) : slots_(capacity) {}

  void Put(void* block) {
    const std::uint64_t at = written_.load(std::memory_order_relaxed);
    // acquire: pairs with the release in Take; the slot is empty again.
    while (at - read_.load(std::memory_order_acquire) == slots_.size()) {
      std::this_thread::yield();
    }
    slots_[at % slots_.size()] = block;
    // release: pairs with the acquire in Take; the slot is filled.
    written_.store(at + 1, std::memory_order_release);
  }

  void* Take() {
    const std::uint64_t at = read_.load(std::memory_order_relaxed);
    // acquire: pairs with the release in Put.
    while (written_.load(std::memory_order_acquire) == at) {
      std::this_thread::yield();
    }
    void* const block = slots_[at % slots_.size()];
    // release: pairs with the acquire in Put.
    read_.store(at + 1, std::memory_order_release);
    return block;
  }

 private:
  std::vector<void*> slots_;
  // Written by the producer, read by the consumer.
  alignas(64) std::atomic<std::uint64_t> written_{0};
  // Written by the consumer, read by the producer.
  alignas(64) std::atomic<std::uint64_t> read_{0};
};

void Produce(Ring& ring, std::uint64_t iterations, std::uint64_t seed) {
  Random random(seed);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    const std::size_t size = random.Between(16, 512);
    void* const block = Allocate(size);
    Touch(block, size);
    ring.Put(block);
  }
}

void Consume(Ring& ring, std::uint64_t iterations) {
  for (std::uint64_t i = 0; i < iterations; ++i) Free(ring.Take());
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t pairs, iterations, capacity, seed;
  ReadArguments(argc, argv,
                {{"PAIRS", 1, &pairs},
                 {"ITERATIONS", 5'000'000, &iterations},
                 {"RING", 4096, &capacity},
                 {"SEED", 1, &seed}});
  if (capacity == 0) capacity = 1;
  const Stopwatch watch;
  std::vector<std::unique_ptr<Ring>> rings;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < pairs; ++i) {
    Ring& ring = *rings.emplace_back(std::make_unique<Ring>(capacity));
    threads.emplace_back(Produce, std::ref(ring), iterations, seed + i);
    threads.emplace_back(Consume, std::ref(ring), iterations);
  }
  for (std::thread& thread : threads) thread.join();
  Report("bench_producer_consumer", iterations * pairs, watch.Seconds());
}
