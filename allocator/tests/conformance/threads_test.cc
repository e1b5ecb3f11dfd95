// Threads: coming and going, the smallest stacks, destructors after ours.

#include <limits.h>
#include <malloc.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// One block of each route, held to its content.
void UseEveryRoute(unsigned seed) {
  for (const std::size_t size : kOfEachRoute) {
    void* block = malloc(size);
    if (block == nullptr) abort();
    FillBlock(block, size, seed);
    if (!BlockHolds(block, size, seed)) abort();
    block = realloc(block, size + size / 2);
    if (block == nullptr || !BlockHolds(block, 100, seed)) abort();
    free(block);
    void* aligned = nullptr;
    if (posix_memalign(&aligned, 4096, size) != 0) abort();
    free(aligned);
    free(calloc(1, size));
  }
}

// 0 on another allocator.
std::uint64_t HeapsCreated() {
  hakmem_statistics statistics = {};
  if (OnHakmem()) Hakmem().get_statistics(&statistics, sizeof(statistics));
  return statistics.heaps_created;
}

TEST(Threads, ThousandsComeAndGo) {
  constexpr unsigned kThreads = 4000;
  constexpr unsigned kAtOnce = 8;
  const std::uint64_t heaps_before = HeapsCreated();
  std::vector<void*> survivors(kThreads);
  for (unsigned first = 0; first < kThreads; first += kAtOnce) {
    std::vector<std::thread> threads;
    for (unsigned i = first; i < first + kAtOnce; ++i) {
      threads.emplace_back([i, &survivors] {
        std::vector<void*> blocks(50);
        for (std::size_t j = 0; j < blocks.size(); ++j) {
          blocks[j] = malloc(1 + j * 40);
        }
        survivors[i] = malloc(100);
        FillBlock(survivors[i], 100, i);
        for (void* block : blocks) free(block);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (unsigned i = 0; i < kThreads; ++i) {
    EXPECT_TRUE(BlockHolds(survivors[i], 100, i));
    free(survivors[i]);
  }
  // Heaps of the dead are used again.
  EXPECT_LE(HeapsCreated(), heaps_before + kThreads / 10);
}

TEST(Threads, ManyAtOnce) {
  constexpr unsigned kThreads = 500;
  std::atomic<unsigned> started{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      void* const block = malloc(200);
      FillBlock(block, 200, 1);
      started.fetch_add(1);
      while (started.load() < kThreads) std::this_thread::yield();
      EXPECT_TRUE(BlockHolds(block, 200, 1));
      free(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, SmallestStackIsEnough) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN), 0);
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, &attributes,
                  [](void*) -> void* {
                    UseEveryRoute(3);
                    malloc_trim(0);
                    UseEveryRoute(4);
                    return nullptr;
                  },
                  nullptr),
              0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
  }
  pthread_attr_destroy(&attributes);
}

// Destructors of thread-specific data, some of which run after hakmem's: each
// frees its block and sets a new one, as often as libc plays along.
constexpr int kKeys = 40;
pthread_key_t g_keys[kKeys];
std::atomic<int> g_destructor_runs{0};

void FreeAndSetAgain(void* block) {
  g_destructor_runs.fetch_add(1);
  const auto key_index = *static_cast<int*>(block);
  UseEveryRoute(static_cast<unsigned>(key_index));
  auto* const next = static_cast<int*>(malloc(24));
  *next = key_index;
  free(block);
  pthread_setspecific(g_keys[key_index], next);
}

void RunThreadWithLateDestructors() {
  std::thread([] {
    for (int i = 0; i < kKeys; i += 8) {
      auto* const block = static_cast<int*>(malloc(24));
      *block = i;
      pthread_setspecific(g_keys[i], block);
    }
  }).join();
}

TEST(Threads, DestructorsAfterOursMayAllocate) {
  free(malloc(10));  // hakmem's own key comes first
  for (pthread_key_t& key : g_keys) {
    ASSERT_EQ(pthread_key_create(&key, &FreeAndSetAgain), 0);
  }
  g_destructor_runs = 0;
  RunThreadWithLateDestructors();
  EXPECT_EQ(g_destructor_runs, kKeys / 8 * PTHREAD_DESTRUCTOR_ITERATIONS);
  const std::uint64_t heaps_before = HeapsCreated();
  for (int i = 0; i < 20; ++i) RunThreadWithLateDestructors();
  for (pthread_key_t& key : g_keys) pthread_key_delete(key);
  // What comes after hakmem's hook does not cost a heap each time.
  EXPECT_LE(HeapsCreated(), heaps_before + 2);
}

// A destructor that allocates in the last of `rounds` rounds, and the thread
// has not done so before.
pthread_key_t g_late_key;
void AllocateInRound(void* rounds) {
  const auto left = reinterpret_cast<std::uintptr_t>(rounds) - 1;
  if (left == 0) return UseEveryRoute(7);
  pthread_setspecific(g_late_key, reinterpret_cast<void*>(left));
}

std::uint64_t HeapsWithAThread() {
  hakmem_statistics statistics = {};
  if (OnHakmem()) Hakmem().get_statistics(&statistics, sizeof(statistics));
  return statistics.heaps_created - statistics.heaps_abandoned;
}

TEST(Threads, AFirstAllocationInADestructorKeepsNoHeap) {
  ASSERT_EQ(pthread_key_create(&g_late_key, &AllocateInRound), 0);
  free(malloc(10));
  const std::uint64_t heaps_before = HeapsWithAThread();
  for (std::uintptr_t rounds = 1; rounds <= PTHREAD_DESTRUCTOR_ITERATIONS;
       ++rounds) {
    for (int i = 0; i < 20; ++i) {
      pthread_t thread;
      ASSERT_EQ(pthread_create(
                    &thread, nullptr,
                    [](void* value) -> void* {
                      pthread_setspecific(g_late_key, value);
                      return nullptr;
                    },
                    reinterpret_cast<void*>(rounds)),
                0);
      ASSERT_EQ(pthread_join(thread, nullptr), 0);
    }
  }
  pthread_key_delete(g_late_key);
  EXPECT_EQ(HeapsWithAThread(), heaps_before);
}

struct FreesAtThreadExit {
  ~FreesAtThreadExit() {
    free(block);
    UseEveryRoute(1);
  }
  void* block = nullptr;
};

TEST(Threads, ThreadLocalDestructorsMayFree) {
  for (int i = 0; i < 100; ++i) {
    std::thread([] {
      thread_local FreesAtThreadExit holder;
      holder.block = malloc(500);
    }).join();
  }
}

TEST(Threads, BlocksOutliveTheirThread) {
  for (const std::size_t size : kOfEachRoute) {
    void* block = nullptr;
    std::thread([&] {
      block = malloc(size);
      FillBlock(block, size, 6);
    }).join();
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(BlockHolds(block, size, 6));
    EXPECT_GE(malloc_usable_size(block), size);
    std::thread([&] { block = realloc(block, size * 2); }).join();
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(BlockHolds(block, size, 6));
    free(block);
  }
}

TEST(Threads, ProducerAndConsumer) {
  constexpr unsigned kBlocks = 200000;
  std::vector<std::atomic<void*>> slots(1024);
  std::atomic<unsigned> bad{0};
  std::thread consumer([&] {
    for (unsigned i = 0; i < kBlocks; ++i) {
      std::atomic<void*>& slot = slots[i % slots.size()];
      void* block = nullptr;
      // acquire: pairs with the producer's release.
      while ((block = slot.exchange(nullptr, std::memory_order_acquire)) ==
             nullptr) {
        std::this_thread::yield();
      }
      if (!BlockHolds(block, 1 + i % 700, i)) bad.fetch_add(1);
      free(block);
    }
  });
  for (unsigned i = 0; i < kBlocks; ++i) {
    void* const block = malloc(1 + i % 700);
    FillBlock(block, 1 + i % 700, i);
    std::atomic<void*>& slot = slots[i % slots.size()];
    while (slot.load(std::memory_order_relaxed) != nullptr) {
      std::this_thread::yield();
    }
    // release: pairs with the consumer's acquire.
    slot.store(block, std::memory_order_release);
  }
  consumer.join();
  EXPECT_EQ(bad.load(), 0U);
}

}  // namespace
}  // namespace hakmem
