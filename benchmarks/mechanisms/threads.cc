// Patterns of many threads, by turns.
#include <malloc.h>

#include <array>
#include <utility>

#include "benchmarks/mechanisms/patterns.h"

namespace hakmem::bench {
namespace {

// Each thread puts blocks into places that all share, and frees what was there,
// in turns of 1,000.
void Exchange(Crew& crew, std::vector<void*>& places, int turns,
              std::size_t low, std::size_t high) {
  Random random(1);
  for (int turn = 0; turn < turns; ++turn) {
    crew.OnEach([&](std::size_t) {
      for (int i = 0; i < 1000; ++i) {
        void* const block = AllocateTouched(random.Between(low, high));
        Free(std::exchange(places[random.Below(places.size())], block));
      }
    });
  }
}

// 500 threads exchange, and all end.
void ExchangeAndEnd() {
  std::vector<void*> places(20'000);
  {
    Crew crew(500);
    Exchange(crew, places, 8, 64, 2000);
    PrintFigure("exchanged", HeldKiB());
    // Two threads free what is left.
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (i % 10'000 == 0) {
        crew.On(i / 10'000, [&](std::size_t) {
          for (std::size_t j = i; j < i + 10'000; ++j) Free(places[j]);
        });
      }
    }
  }
  PrintFigure("ended", HeldKiB());
  malloc_trim(0);
  PrintFigure("trimmed", HeldKiB());
}

// 200 threads exchange, and sleep.
void ExchangeAndSleep() {
  std::vector<void*> places(20'000);
  Crew crew(200);
  Exchange(crew, places, 8, 64, 20'000);
  PrintFigure("asleep", HeldKiB());
  Idle(10);
  PrintFigure("idle", HeldKiB());
  malloc_trim(0);
  PrintFigure("trimmed", HeldKiB());
}

// 16 threads exchange: bench_exchange.
void ExchangeOf16() {
  std::vector<void*> places(20'000);
  Crew crew(16);
  Exchange(crew, places, 100, 16, 416);
  PrintFigure("asleep", HeldKiB());
}

// A thread allocates buffers, 64 at a time, for 200 that free them.
void Pipelined() {
  Random random(1);
  Crew crew(200);
  std::vector<void*> buffers(64);
  for (std::size_t turn = 0; turn < 400; ++turn) {
    for (void*& buffer : buffers) {
      const std::size_t size = random.Between(64 * kKiB, kMiB);
      buffer = Allocate(size);
      TouchPages(buffer, size);
    }
    crew.On(turn % 200, [&](std::size_t) {
      for (void* buffer : buffers) Free(buffer);
    });
  }
  PrintFigure("asleep", HeldKiB());
}

// Two threads, six spans of 100 to 230 KB at a time.
void SpanPairs() {
  Random random(1);
  std::vector<void*> spans(6);
  Crew crew(2);
  for (int turn = 0; turn < 20; ++turn) {
    crew.OnEach([&](std::size_t) {
      const auto pairs = [&] {
        for (int i = 0; i < 10; ++i) {
          for (void*& span : spans) {
            span = Allocate(random.Between(100'000, 230'000));
          }
          for (void* span : spans) Free(span);
        }
      };
      turn < 10 ? pairs() : Measure(pairs);
    });
  }
  CountOperations(10 * 2 * 10 * spans.size());
}

// Bursts of 50,000 blocks, some 800 magazines; another thread frees each.
void BurstsForAnother() {
  std::vector<void*> blocks(50'000);
  Crew crew(2);
  for (int turn = 0; turn < 4; ++turn) {
    const auto make = [&] {
      for (void*& block : blocks) block = Allocate(64);
    };
    const auto drop = [&] {
      for (void* block : blocks) Free(block);
    };
    crew.On(0, [&](std::size_t) { turn < 2 ? make() : Measure(make); });
    crew.On(1, [&](std::size_t) { turn < 2 ? drop() : Measure(drop); });
  }
  CountOperations(2 * blocks.size());
}

// 500 threads; each takes and frees 1 MiB, and sleeps.
void SleepersOfAMiB() {
  Crew crew(500);
  crew.OnEach([](std::size_t) {
    void* const span = Allocate(kMiB);
    TouchPages(span, kMiB);
    Free(span);
  });
  PrintFigure("asleep", HeldKiB());
  Idle(10);
  PrintFigure("idle", HeldKiB());
}

// 1,000 threads; each holds 20 small blocks, and sleeps. Then all end.
void SleepersWithBlocks() {
  Random random(1);
  std::vector<std::array<void*, 20>> blocks(1000);
  {
    Crew crew(blocks.size());
    crew.OnEach([](std::size_t) {});
    const std::uint64_t before = HeldKiB();
    crew.OnEach([&](std::size_t i) {
      for (void*& block : blocks[i]) {
        block = AllocateTouched(random.Between(16, 1024));
      }
    });
    PrintFigure("asleep", HeldKiB() - before);
    crew.OnEach([&](std::size_t i) {
      for (void* block : blocks[i]) Free(block);
    });
  }
  malloc_trim(0);
  PrintFigure("trimmed", HeldKiB());
}

// 200 threads, each takes and frees 300 spans, and sleeps.
void SleepersOfSpans() {
  Random random(1);
  Crew crew(200);
  for (int turn = 0; turn < 3; ++turn) {
    crew.OnEach([&](std::size_t) {
      for (int i = 0; i < 100; ++i) {
        const std::size_t size = random.Between(70'000, 300'000);
        void* const span = Allocate(size);
        TouchPages(span, size);
        Free(span);
      }
    });
  }
  PrintFigure("asleep", HeldKiB());
  Idle(10);
  PrintFigure("idle", HeldKiB());
}

// The main thread frees the blocks of 100 sleeping threads by turns.
void OwnersByTurns() {
  std::vector<std::vector<void*>> blocks(100, std::vector<void*>(10'000));
  Crew crew(100);
  crew.OnEach([&](std::size_t i) {
    for (void*& block : blocks[i]) block = AllocateTouched(16);
  });
  Measure([&] {
    for (std::size_t j = 0; j < 10'000; ++j) {
      for (std::vector<void*>& of_one : blocks) Free(of_one[j]);
    }
  });
  CountOperations(100 * 10'000);
  PrintFigure("asleep", HeldKiB());
}

// One thread allocates what another frees, in turns of 2,000.
void ProducerConsumer() {
  Random random(1);
  std::vector<void*> ring(2000);
  Crew crew(2);
  for (int turn = 0; turn < 30; ++turn) {
    crew.On(0, [&](std::size_t) {
      const auto produce = [&] {
        for (void*& block : ring) block = Allocate(random.Between(16, 512));
      };
      turn < 10 ? produce() : Measure(produce);
    });
    crew.On(1, [&](std::size_t) {
      const auto consume = [&] {
        for (void* block : ring) Free(block);
      };
      turn < 10 ? consume() : Measure(consume);
    });
  }
  CountOperations(20 * ring.size());
}

// Tables of four threads move on to the next thread.
void Migration() {
  Random random(1);
  std::vector<std::vector<void*>> tables(4, std::vector<void*>(2000));
  Crew crew(4);
  for (std::size_t turn = 0; turn < 24; ++turn) {
    crew.OnEach([&](std::size_t thread) {
      const auto replace = [&] {
        for (std::size_t i = 0; i < 2000; ++i) {
          void*& slot = tables[(thread + turn) % 4][random.Below(2000)];
          Free(slot);
          slot = Allocate(random.Between(16, 512));
        }
      };
      turn < 8 ? replace() : Measure(replace);
    });
  }
  CountOperations(16 * 4 * 2000);
}

// Threads of 100 blocks, one after the other; half are left to who waits.
void ThreadChurn() {
  Random random(1);
  std::vector<void*> left(50);
  for (int life = 0; life < 300; ++life) {
    Crew crew(1);
    crew.On(0, [&](std::size_t) {
      const auto live = [&] {
        std::vector<void*> own(50);
        for (void*& block : left) block = Allocate(random.Between(16, 1040));
        for (void*& block : own) block = Allocate(random.Between(16, 1040));
        for (void* block : own) Free(block);
      };
      life < 100 ? live() : Measure(live);
    });
    crew.End();
    for (void* block : left) Free(block);
  }
  CountOperations(200 * 100);
}

// A thread allocates, and sleeps; two others free that, and go on with blocks
// of their own.
void StoppedProducer() {
  Random random(1);
  std::vector<void*> blocks(100'000);
  Crew crew(3);
  for (int round = 0; round < 5; ++round) {
    crew.OnEach([&](std::size_t thread) {
      for (std::size_t i = thread == 0 ? 0 : thread - 1; i < blocks.size();
           i += thread == 0 ? 1 : 2) {
        Free(std::exchange(blocks[i], nullptr));
        blocks[i] = AllocateTouched(random.Between(16, 512));
      }
    });
  }
  for (void* block : blocks) Free(block);
  PrintFigure("asleep", HeldKiB());
}

}  // namespace

const std::vector<Pattern> kThreadPatterns = {
    {"exchange_and_end", ExchangeAndEnd},
    {"exchange_and_sleep", ExchangeAndSleep},
    {"exchange_of_16", ExchangeOf16},
    {"pipelined", Pipelined},
    {"span_pairs", SpanPairs},
    {"bursts_for_another", BurstsForAnother},
    {"sleepers_of_a_mib", SleepersOfAMiB},
    {"sleepers_of_spans", SleepersOfSpans},
    {"sleepers_with_blocks", SleepersWithBlocks},
    {"owners_by_turns", OwnersByTurns},
    {"producer_consumer", ProducerConsumer},
    {"migration", Migration},
    {"thread_churn", ThreadChurn},
    {"stopped_producer", StoppedProducer},
};

}  // namespace hakmem::bench
