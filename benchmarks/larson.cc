// A server, after Larson & Krishnan (ISMM 1998): each thread replaces random
// blocks of its table; after ROUNDS times CHUNKS operations it ends and hands
// the table to a new thread, so that most blocks are freed by a thread that
// did not allocate them.
//
// Two orders of arguments: that of the original, and the old system's, which
// has the threads first:
//   larson SECONDS MIN MAX CHUNKS ROUNDS SEED THREADS
//   larson old THREADS SECONDS MIN MAX CHUNKS ROUNDS SEED
// All seven of the old ones do without the word where they cannot be the
// others, because their second would be a MIN over its MAX.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

struct Setup {
  std::uint64_t seconds, minimum, maximum, chunks, rounds, seed, threads;
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

bool IsOldOrder(int argc, char** argv) {
  constexpr int kAll = 8;
  return argc == kAll && std::strtoull(argv[2], nullptr, 10) >
                             std::strtoull(argv[3], nullptr, 10);
}

void ReadSetup(int argc, char** argv, Setup& setup) {
  const Parameter seconds{"SECONDS", 2, &setup.seconds, 1, 3600};
  const Parameter minimum{"MIN", 8, &setup.minimum};
  const Parameter maximum{"MAX", 128, &setup.maximum};
  const Parameter chunks{"CHUNKS", 1024, &setup.chunks};
  const Parameter rounds{"ROUNDS", 100, &setup.rounds};
  const Parameter seed{"SEED", 1, &setup.seed, 0};
  const Parameter threads{"THREADS", 4, &setup.threads, 1, 1024};
  const bool says_old = argc > 1 && std::strcmp(argv[1], "old") == 0;
  // What comes after the word has the program's name before it, as always.
  if (says_old) argv[1] = argv[0];
  if (says_old || IsOldOrder(argc, argv)) {
    std::fprintf(stderr, "larson: the old order: threads come first\n");
    ReadArguments(argc - says_old, argv + says_old,
                  {threads, seconds, minimum, maximum, chunks, rounds, seed});
  } else {
    ReadArguments(argc, argv,
                  {seconds, minimum, maximum, chunks, rounds, seed, threads});
  }
  if (setup.minimum > setup.maximum) {
    RejectArguments(argv[0], "MIN is over MAX");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Setup setup;
  ReadSetup(argc, argv, setup);
  std::vector<Lane> lanes;
  for (std::uint64_t i = 0; i < setup.threads; ++i) {
    lanes.push_back({std::vector<void*>(setup.chunks), Random(setup.seed + i)});
  }
  Phase phase;
  std::vector<std::thread> runners;
  for (Lane& lane : lanes) {
    runners.emplace_back(RunLane, std::cref(setup), std::ref(lane));
  }
  std::this_thread::sleep_for(std::chrono::seconds(setup.seconds));
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
