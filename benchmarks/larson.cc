// A server, after Larson & Krishnan (ISMM 1998): each thread replaces random
// blocks of its table; after ROUNDS times CHUNKS operations it ends and hands
// the table to a new thread, so that most blocks are freed by a thread that
// did not allocate them.
#include <atomic>
#include <thread>
#include <vector>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

struct Setup {
  std::uint64_t minimum, maximum, chunks, rounds;
};

std::atomic<bool> stop{false};

// One thread's share; the next life of its table runs on a new thread.
struct Lane {
  std::vector<void*> table;
  Random random;
  std::uint64_t operations = 0;
};

void RunLife(const Setup& setup, Lane& lane) {
  for (std::uint64_t i = 0; i < setup.rounds * setup.chunks; ++i) {
    if (stop.load(std::memory_order_relaxed)) return;
    void*& slot = lane.table[lane.random.Below(lane.table.size())];
    Free(slot);
    const std::size_t size = lane.random.Between(setup.minimum, setup.maximum);
    slot = Allocate(size);
    Touch(slot, size);
    ++lane.operations;
  }
}

void RunLane(const Setup& setup, Lane& lane) {
  while (!stop.load(std::memory_order_relaxed)) {
    std::thread(RunLife, std::cref(setup), std::ref(lane)).join();
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seconds, seed, threads;
  Setup setup;
  ReadArguments(argc, argv,
                {{"SECONDS", 2, &seconds},
                 {"MIN", 8, &setup.minimum},
                 {"MAX", 128, &setup.maximum},
                 {"CHUNKS", 1024, &setup.chunks},
                 {"ROUNDS", 100, &setup.rounds},
                 {"SEED", 1, &seed},
                 {"THREADS", 4, &threads}});
  std::vector<Lane> lanes;
  for (std::uint64_t i = 0; i < threads; ++i) {
    lanes.push_back({std::vector<void*>(setup.chunks), Random(seed + i)});
  }
  const Stopwatch watch;
  std::vector<std::thread> runners;
  for (Lane& lane : lanes) {
    runners.emplace_back(RunLane, std::cref(setup), std::ref(lane));
  }
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  stop.store(true, std::memory_order_relaxed);
  for (std::thread& runner : runners) runner.join();
  const double elapsed = watch.Seconds();
  std::uint64_t operations = 0;
  for (const Lane& lane : lanes) operations += lane.operations;
  Report("larson", operations, elapsed);
}
