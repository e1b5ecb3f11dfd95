// A server, after Larson & Krishnan (ISMM 1998): each thread replaces random
// blocks of its table; after ROUNDS times CHUNKS operations it ends and hands
// the table to a new thread, so that most blocks are freed by a thread that
// did not allocate them.
#include <atomic>
#include <functional>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

struct Setup {
  std::uint64_t minimum, maximum, chunks, rounds;
};

// Written by the main thread at the end, read by all others.
std::atomic<bool> stop{false};

// One thread's share; the next life of its table runs on a new thread.
struct alignas(64) Lane {
  std::vector<void*> table;
  Random random;
  std::uint64_t operations = 0;
};

void RunLife(const Setup& setup, Lane& lane) {
  const std::uint64_t length = setup.rounds * setup.chunks;
  std::uint64_t i = 0;
  for (; i < length && !stop.load(std::memory_order_relaxed); ++i) {
    void*& slot = lane.table[lane.random.Below(setup.chunks)];
    Free(slot);
    slot = AllocateTouched(lane.random.Between(setup.minimum, setup.maximum));
  }
  lane.operations += i;
}

void RunLane(const Setup& setup, Lane& lane) {
  do {
    std::thread(RunLife, std::cref(setup), std::ref(lane)).join();
  } while (!stop.load(std::memory_order_relaxed));
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seconds, seed, threads;
  Setup setup;
  ReadArguments(argc, argv,
                {{"SECONDS", 2, &seconds, 1, 3600},
                 {"MIN", 8, &setup.minimum},
                 {"MAX", 128, &setup.maximum},
                 {"CHUNKS", 1024, &setup.chunks},
                 {"ROUNDS", 100, &setup.rounds},
                 {"SEED", 1, &seed, 0},
                 {"THREADS", 4, &threads, 1, 1024}});
  if (setup.minimum > setup.maximum) {
    RejectArguments(argv[0], "MIN is over MAX");
  }
  std::vector<Lane> lanes;
  for (std::uint64_t i = 0; i < threads; ++i) {
    lanes.push_back({std::vector<void*>(setup.chunks), Random(seed + i)});
  }
  Phase phase;
  std::vector<std::thread> runners;
  for (Lane& lane : lanes) {
    runners.emplace_back(RunLane, std::cref(setup), std::ref(lane));
  }
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  stop.store(true, std::memory_order_relaxed);
  for (std::thread& runner : runners) runner.join();
  phase.Stop();
  std::uint64_t operations = 0;
  for (const Lane& lane : lanes) {
    operations += lane.operations;
    for (void* block : lane.table) Free(block);
  }
  Report(phase, operations);
}
