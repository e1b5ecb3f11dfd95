// A burst and its end: a thread allocates BURST_MIB, then all of it is freed;
// for WATCH_MS the main thread looks how much memory the process still holds.
//   busy      the thread frees its burst and goes on with a few small blocks
//   sleeping  the thread frees its burst and sleeps
//   other     the thread sleeps; one that never allocates frees the burst
// release_seconds is the time from the last free until three quarters were
// given back, and is left out when that did not happen in WATCH_MS.
#include <atomic>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;
using Clock = std::chrono::steady_clock;

enum : std::uint64_t { kBusy, kSleeping, kOther };

// Written by the main thread at the end, read by the thread of kBusy.
std::atomic<bool> done{false};

void Fill(std::vector<void*>& blocks, std::size_t bytes, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t total = 0; total < bytes;) {
    const std::size_t size = random.Between(64, 4096);
    blocks.push_back(AllocateTouched(size));
    total += size;
  }
}

void StayBusy() {
  while (!done.load(std::memory_order_relaxed)) {
    for (std::size_t size = 16; size <= 4096; size *= 2) {
      Free(AllocateTouched(size));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

struct Watched {
  double release_seconds = -1;
  std::size_t settled = 0;
};

Watched Watch(std::uint64_t milliseconds, std::size_t before,
              std::size_t burst) {
  Watched watched;
  const auto start = Clock::now();
  const auto end = start + std::chrono::milliseconds(milliseconds);
  for (auto now = start; now < end; now = Clock::now()) {
    watched.settled = ResidentBytes();
    if (watched.release_seconds < 0 && watched.settled <= before + burst / 4) {
      const std::chrono::duration<double> elapsed = Clock::now() - start;
      watched.release_seconds = elapsed.count();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return watched;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t mode, burst_mib, watch_ms, seed;
  ReadArguments(argc, argv,
                {{"MODE", {"busy", "sleeping", "other"}, &mode},
                 {"BURST_MIB", 128, &burst_mib, 1, 65'536},
                 {"WATCH_MS", 1000, &watch_ms, 1, 600'000},
                 {"SEED", 1, &seed, 0}});
  const std::size_t burst = burst_mib << 20;
  std::vector<void*> blocks;
  // Enough for the average size, and some.
  blocks.reserve(burst / 1024);
  const std::size_t before = ResidentBytes();
  std::barrier freed(mode == kOther ? 3 : 2);
  std::barrier watched(mode == kOther ? 3 : 2);
  std::barrier filled(2);
  const auto free_all = [&blocks] {
    for (void* block : blocks) Free(block);
  };
  Phase phase;
  std::thread owner([&] {
    Fill(blocks, burst, seed);
    if (mode == kOther) {
      filled.arrive_and_wait();
    } else {
      free_all();
    }
    freed.arrive_and_wait();
    if (mode == kBusy) StayBusy();
    watched.arrive_and_wait();
  });
  std::thread other;
  if (mode == kOther) {
    other = std::thread([&] {
      filled.arrive_and_wait();
      free_all();
      freed.arrive_and_wait();
      watched.arrive_and_wait();
    });
  }
  freed.arrive_and_wait();
  phase.Stop();
  const Watched seen = Watch(watch_ms, before, burst);
  done.store(true, std::memory_order_relaxed);
  watched.arrive_and_wait();
  owner.join();
  if (other.joinable()) other.join();
  const Figure settled = {"settled_rss_bytes",
                          static_cast<double>(seen.settled)};
  const Figure live = {"live_bytes",
                       static_cast<double>(blocks.size() * sizeof(void*))};
  if (seen.release_seconds < 0) {
    Report(phase, blocks.size(), {settled, live});
  } else {
    Report(phase, blocks.size(),
           {settled, live, {"release_seconds", seen.release_seconds}});
  }
}
