// Threads that only allocate, and threads that only free, with bounded rings
// between them: LANES pairs, one producer that serves LANES consumers in turn,
// or LANES producers that one consumer serves in turn.
#include <atomic>
#include <memory>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

enum : std::uint64_t { kOneToOne, kOneToMany, kManyToOne };

// One thread puts, one takes. Both tell the other of kStep blocks at once, so
// that what is measured is not the ring.
class Ring {
 public:
  void Put(void* block) {
    // acquire: pairs with the release in Take; the slot is empty again.
    while (put_ - read_.load(std::memory_order_acquire) == kCapacity) {
      std::this_thread::yield();
    }
    slots_[put_++ % kCapacity] = block;
    if (put_ % kStep == 0) Flush();
  }

  // release: pairs with the acquire in Take; the slots are filled.
  void Flush() { written_.store(put_, std::memory_order_release); }

  void* Take() {
    // acquire: pairs with the release in Flush.
    while (written_.load(std::memory_order_acquire) == taken_) {
      std::this_thread::yield();
    }
    void* const block = slots_[taken_++ % kCapacity];
    // release: pairs with the acquire in Put.
    if (taken_ % kStep == 0) read_.store(taken_, std::memory_order_release);
    return block;
  }

 private:
  static constexpr std::uint64_t kCapacity = 4096;
  static constexpr std::uint64_t kStep = 32;

  void* slots_[kCapacity] = {};
  // Written by the producer, read by the consumer.
  alignas(64) std::atomic<std::uint64_t> written_{0};
  std::uint64_t put_ = 0;  // the producer's
  // Written by the consumer, read by the producer.
  alignas(64) std::atomic<std::uint64_t> read_{0};
  std::uint64_t taken_ = 0;  // the consumer's
};

using Rings = std::vector<std::unique_ptr<Ring>>;

// Serve the rings [first, last) in turn, `iterations` blocks through each.
void Produce(Rings& rings, std::uint64_t first, std::uint64_t last,
             std::uint64_t iterations, std::uint64_t seed) {
  Random random(seed);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    for (std::uint64_t lane = first; lane < last; ++lane) {
      rings[lane]->Put(AllocateTouched(random.Between(16, 512)));
    }
  }
  for (std::uint64_t lane = first; lane < last; ++lane) rings[lane]->Flush();
}

void Consume(Rings& rings, std::uint64_t first, std::uint64_t last,
             std::uint64_t iterations) {
  for (std::uint64_t i = 0; i < iterations; ++i) {
    for (std::uint64_t lane = first; lane < last; ++lane) {
      Free(rings[lane]->Take());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t pattern, lanes, iterations, seed;
  ReadArguments(
      argc, argv,
      {{"PATTERN", {"one_to_one", "one_to_many", "many_to_one"}, &pattern},
       {"LANES", 1, &lanes, 1, 512},
       {"ITERATIONS", 5'000'000, &iterations},
       {"SEED", 1, &seed, 0}});
  const std::uint64_t producers = pattern == kOneToMany ? 1 : lanes;
  const std::uint64_t consumers = pattern == kManyToOne ? 1 : lanes;
  Rings rings;
  for (std::uint64_t i = 0; i < lanes; ++i) {
    rings.push_back(std::make_unique<Ring>());
  }
  Phase phase;
  OnThreads(producers + consumers, [&](std::uint64_t i) {
    if (i < producers) {
      const std::uint64_t share = lanes / producers;
      Produce(rings, i * share, (i + 1) * share, iterations, seed + i);
    } else {
      const std::uint64_t share = lanes / consumers;
      const std::uint64_t first = (i - producers) * share;
      Consume(rings, first, first + share, iterations);
    }
  });
  phase.Stop();
  Report(phase, iterations * lanes);
}
