// Does what a trace says, each recorded thread on a thread of its own.
//
// A thread does its steps in their order, as fast as it can, and waits only
// until its block's turn has come: the block it frees or reallocates has been
// allocated by then, and an old block's number is free before it is used
// again. Thread 0 of the trace, the first to allocate when it was recorded, is
// the thread that calls Play, for allocators that treat the main thread apart.
//
// Owns: the table of living blocks. Called by: replay_main.cc and tests.
// Thread-safety: Play is for one thread at a time.
// Invariants:
//   Y1: a slot's `block` and `size` belong to the thread whose turn it is.
//   Y2: after Play no block of the trace is alive.
//
// Heap has static functions like malloc's: Allocate, AllocateZeroed,
// AllocateAligned(alignment, size), Reallocate and Free.
#ifndef HAKMEM_BENCHMARKS_TRACES_PLAYER_H_
#define HAKMEM_BENCHMARKS_TRACES_PLAYER_H_

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "benchmarks/traces/mapped_memory.h"
#include "benchmarks/traces/plan.h"
#include "benchmarks/traces/trace_format.h"

namespace hakmem::traces {

// The process's malloc.
struct ProcessHeap {
  static void* Allocate(std::size_t size) { return std::malloc(size); }
  static void* AllocateZeroed(std::size_t size) { return std::calloc(1, size); }
  static void* AllocateAligned(std::size_t alignment, std::size_t size) {
    void* block = nullptr;
    const std::size_t least = std::max(alignment, sizeof(void*));
    return posix_memalign(&block, least, size) == 0 ? block : nullptr;
  }
  static void* Reallocate(void* block, std::size_t size) {
    return std::realloc(block, size);
  }
  static void Free(void* block) { std::free(block); }
};

// What Play did, without starting threads and without freeing what the trace
// leaves behind.
struct Played {
  const char* error = nullptr;
  double seconds = 0;
  double system_seconds = 0;
  std::uint64_t minor_faults = 0;

  void operator+=(const Played& other) {
    error = error != nullptr ? error : other.error;
    seconds += other.seconds;
    system_seconds += other.system_seconds;
    minor_faults += other.minor_faults;
  }
};

template <typename Heap>
class Player {
 public:
  explicit Player(const Plan& plan) : plan_(plan) {}

  // False: no memory for the tables.
  bool Prepare() {
    return slots_.Create(plan_.header().blocks) &&
           threads_.Create(plan_.header().threads);
  }

  Played Play() {
    for (Slot& slot : slots_.items()) {
      slot.turn.store(0, std::memory_order_relaxed);
    }
    error_.store(nullptr, std::memory_order_relaxed);
    waiting_.store(0, std::memory_order_relaxed);
    go_.store(false, std::memory_order_relaxed);
    const std::uint32_t started = StartThreads();
    const bool complete = started + 1 >= plan_.header().threads;
    if (!complete) Fail("no more threads can be started");
    const Played before = Usage();
    // release: with the acquire in Main, the slots are as set above.
    go_.store(true, std::memory_order_release);
    if (complete && plan_.header().threads > 0) DoSteps(plan_.steps(0));
    for (std::uint32_t i = 0; i < started; ++i) {
      pthread_join(threads_[i + 1].handle, nullptr);
    }
    Played played = Usage();
    played.seconds -= before.seconds;
    played.system_seconds -= before.system_seconds;
    played.minor_faults -= before.minor_faults;
    played.error = error_.load(std::memory_order_relaxed);
    FreeRest();
    return played;
  }

 private:
  struct Slot {
    // The next turn. Written by the thread that has the turn, read by all.
    std::atomic<std::uint32_t> turn;
    // Of the first byte written, to see whether it is still there.
    unsigned char mark;
    void* block;
  };
  struct Thread {
    Player* player;
    std::uint32_t number;
    pthread_t handle;
  };

  static void* Main(void* argument) {
    const Thread& thread = *static_cast<Thread*>(argument);
    Player& player = *thread.player;
    player.waiting_.fetch_add(1, std::memory_order_relaxed);
    // acquire: pairs with the release in Play.
    while (!player.go_.load(std::memory_order_acquire)) sched_yield();
    player.DoSteps(player.plan_.steps(thread.number));
    return nullptr;
  }

  // How many were started, all but thread 0 when it worked.
  std::uint32_t StartThreads() {
    std::uint32_t started = 0;
    while (started + 1 < plan_.header().threads) {
      Thread& thread = threads_[started + 1];
      thread.player = this;
      thread.number = started + 1;
      if (pthread_create(&thread.handle, nullptr, Main, &thread) != 0) break;
      ++started;
    }
    while (waiting_.load(std::memory_order_relaxed) < started) sched_yield();
    return started;
  }

  static Played Usage() {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    const std::chrono::duration<double> now =
        std::chrono::steady_clock::now().time_since_epoch();
    return {.seconds = now.count(),
            .system_seconds = static_cast<double>(usage.ru_stime.tv_sec) +
                              static_cast<double>(usage.ru_stime.tv_usec) / 1e6,
            .minor_faults = static_cast<std::uint64_t>(usage.ru_minflt)};
  }

  void Fail(const char* error) {
    error_.store(error, std::memory_order_relaxed);
  }

  // False: another thread failed, so the turn may never come.
  bool AwaitTurn(const Slot& slot, std::uint32_t turn) {
    // acquire: pairs with the release in DoSteps; the slot is ours now.
    for (int tries = 0; slot.turn.load(std::memory_order_acquire) != turn;
         ++tries) {
      if (tries < kSpins) continue;
      if (error_.load(std::memory_order_relaxed) != nullptr) return false;
      if (tries < kYields) {
        sched_yield();
      } else {
        // Else those who wait would take the processors from who works.
        const timespec pause = {.tv_sec = 0, .tv_nsec = 50'000};
        nanosleep(&pause, nullptr);
      }
    }
    return true;
  }

  void DoSteps(std::span<const Step> steps) {
    for (const Step& step : steps) {
      Slot& slot = slots_[step.block];
      if (!AwaitTurn(slot, step.turn)) return;
      const char* const error = DoStep(step, slot);
      if (error != nullptr) return Fail(error);
      // release: with the acquire in AwaitTurn, the next in turn sees the
      // block.
      slot.turn.store(step.turn + 1, std::memory_order_release);
    }
  }

  const char* DoStep(const Step& step, Slot& slot) {
    void* block = nullptr;
    switch (static_cast<Op>(step.op)) {
      case Op::kFree:
        Heap::Free(slot.block);
        slot.block = nullptr;
        return nullptr;
      case Op::kAllocate:
        block = Heap::Allocate(step.size);
        break;
      case Op::kAllocateZeroed:
        block = Heap::AllocateZeroed(step.size);
        break;
      case Op::kAllocateAligned:
        block = Heap::AllocateAligned(std::size_t{1} << step.alignment_log2,
                                      step.size);
        break;
      case Op::kReallocate:
        // The allocator may return null for 0 bytes, having freed the block.
        block =
            Heap::Reallocate(slot.block, std::max<std::size_t>(step.size, 1));
        break;
    }
    if (block == nullptr && step.size > 0) return "out of memory";
    const bool changed =
        step.op == static_cast<std::uint8_t>(Op::kReallocate) &&
        slot.mark != 0 && step.size > 0 &&
        *static_cast<unsigned char*>(block) != slot.mark;
    slot.block = block;
    slot.mark = step.size > 0 ? static_cast<unsigned char>(step.block | 1) : 0;
    Touch(block, step.size, slot.mark);
    return changed ? "realloc did not keep what the block held" : nullptr;
  }

  // The first and the last byte, and one in each page.
  static void Touch(void* block, std::size_t size, unsigned char mark) {
    if (size == 0) return;
    auto* const bytes = static_cast<volatile unsigned char*>(block);
    for (std::size_t at = 0; at < size; at += 4096) bytes[at] = mark;
    bytes[size - 1] = mark;
  }

  void FreeRest() {
    for (Slot& slot : slots_.items()) {
      Heap::Free(slot.block);
      slot.block = nullptr;
    }
  }

  static constexpr int kSpins = 100;
  static constexpr int kYields = 1000;

  const Plan& plan_;
  MappedArray<Slot> slots_;
  MappedArray<Thread> threads_;
  // The first failure; written by the thread that fails, read by all.
  std::atomic<const char*> error_ = nullptr;
  // Threads that wait for `go_`; each adds itself, Play reads.
  std::atomic<std::uint32_t> waiting_ = 0;
  // Written by Play, read by the threads.
  std::atomic<bool> go_ = false;
};

}  // namespace hakmem::traces

#endif  // HAKMEM_BENCHMARKS_TRACES_PLAYER_H_
