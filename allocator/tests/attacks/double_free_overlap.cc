// Frees a block twice, so that malloc gives the block to two owners.
// attack at_once: twice in a row
// expect at_once: detected
// attack between: another block is freed between
// expect between: detected
// attack many_between: 1,000 others are freed between
// expect many_between: detected
// attack other_thread: another thread frees it again
// expect other_thread: detected
// attack race: two threads free it at the same time
// expect race: detected
// attack middle: twice in a row, a block of 5 KiB
// expect middle: detected
// attack large: twice in a row, a block of 200 KB
// expect large: detected
// attack stale: the second free comes when the block is another owner's already
// expect stale: succeeds
#include <atomic>

#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

char* g_later[8000];

void FreeAtTheSameTime(char* block) {
  std::atomic<int> ready{0};
  const auto free_when_ready = [&] {
    ready.fetch_add(1);
    while (ready.load() < 2) {
    }
    Free(block);
  };
  const Thread other(free_when_ready);
  free_when_ready();
}

void FreeTwice(const char* how, char* block, char* const* others) {
  if (Is(how, "race")) return FreeAtTheSameTime(block);
  Free(block);
  if (Is(how, "between")) Free(others[0]);
  if (Is(how, "many_between")) {
    for (int i = 0; i < 1000; ++i) Free(others[i]);
  }
  if (Is(how, "other_thread")) {
    InOtherThread([&] { Free(block); });
  } else {
    Free(block);
  }
}

void LookForTwins(std::size_t size, int count) {
  for (int i = 0; i < count; ++i) g_later[i] = Allocate(size);
  std::sort(g_later, g_later + count);
  for (int i = 1; i < count; ++i) {
    if (g_later[i] < g_later[i - 1] + size) Succeeded();
  }
  for (int i = 0; i < count; ++i) Free(g_later[i]);
}

// Whether malloc returns the block, in a program that allocates and frees.
bool ComesAgain(const char* block) {
  constexpr int kBatch = 256;
  for (int round = 0; round < 1000; ++round) {
    for (int i = 0; i < kBatch; ++i) {
      g_later[i] = Allocate(kSmall);
      if (g_later[i] == block) return true;
    }
    for (int i = 0; i < kBatch; ++i) Free(g_later[i]);
  }
  return false;
}

[[noreturn]] void FreeStale(char* block) {
  Free(block);
  if (!ComesAgain(block)) Failed("it did not come again");
  Free(block);
  if (ComesAgain(block)) Succeeded();
  Failed("it did not come a third time");
}

}  // namespace

int main(int, char** argv) {
  Begin();
  const std::size_t size = Is(argv[1], "large")    ? kLarge
                           : Is(argv[1], "middle") ? kMiddle
                                                   : kSmall;
  static char* others[1000];
  const int count = size == kLarge ? 10 : 1000;
  for (int i = 0; i < count / 2; ++i) others[i] = Allocate(size);
  char* const block = Allocate(size);
  for (int i = count / 2; i < count; ++i) others[i] = Allocate(size);
  // Some allocators come back to a slab when much of it is free.
  const auto free_most = [&] {
    for (int i = 1; i < count; ++i) {
      if (i % 4 != 0) Free(others[i]);
    }
  };
  if (Is(argv[1], "stale")) {
    free_most();
    FreeStale(block);
  }
  FreeTwice(argv[1], block, others);
  const int later = size == kLarge ? 100 : 8000;
  LookForTwins(size, later);
  if (!Is(argv[1], "many_between")) free_most();
  for (int round = 0; round < 2; ++round) LookForTwins(size, later);
  Failed("no block came twice");
}
