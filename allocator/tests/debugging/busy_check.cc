// Has the heap checked again and again while other threads allocate, free,
// resize and hand blocks on: nothing is damaged.
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "allocator/hakmem.h"

namespace {

constexpr int kThreads = 3;
constexpr int kSlots = 256;
constexpr int kChecks = 30;

std::atomic<bool> g_stop{false};
std::atomic<char*> g_slots[kSlots];

void* Work(void* argument) {
  std::uint64_t random = reinterpret_cast<std::uintptr_t>(argument) + 1;
  const std::size_t sizes[] = {1, 40, 100, 1000, 5000, 60'000, 100'000};
  while (!g_stop.load(std::memory_order_relaxed)) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const std::size_t size = sizes[(random >> 33) % 7];
    char* block = static_cast<char*>(malloc(size));
    if (block == nullptr) continue;
    std::memset(block, 'x', size);
    if ((random >> 40) % 4 == 0) {
      block = static_cast<char*>(realloc(block, size + size / 2));
    }
    free(g_slots[(random >> 50) % kSlots].exchange(block));
  }
  return nullptr;
}

}  // namespace

int main() {
  pthread_t threads[kThreads];
  for (std::uintptr_t i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], nullptr, &Work, reinterpret_cast<void*>(i));
  }
  std::size_t damaged = 0;
  for (int i = 0; i < kChecks; ++i) damaged += hakmem_check_heap();
  g_stop = true;
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  std::printf("damaged: %zu\n", damaged);
}
