// Each path of malloc and free, warm, in a function of its own whose name
// starts with Measured; instructions_test.py counts what hakmem executes in it.
//
// Usage: warm_paths. Prints the operations of each measured function.
#include <malloc.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <semaphore>
#include <thread>
#include <vector>

namespace {

// So few that, after Warm, no slow path comes between.
constexpr std::size_t kFew = 20;
constexpr std::size_t kWarm = 40;
constexpr std::size_t kBatch = 1000;
constexpr std::size_t kLargeBatch = 20000;
// Fewer bytes than a receiver lets lie before senders file them themselves.
constexpr std::size_t kRemoteBatch = 10000;
constexpr std::size_t kRounds = 10;
// Threads that have ended, more than are remembered as warm, and the blocks
// that each has left.
constexpr std::size_t kEnded = 200;
constexpr std::size_t kLeftByEach = 20;
constexpr std::size_t kTinyBytes = 64;
constexpr std::size_t kPoolBytes = 3000;
// Which leave 24 bytes of their block behind a canary.
constexpr std::size_t kTightBytes = 3040;
constexpr std::size_t kSpanBytes = std::size_t{300} * 1024;
// Of Pool blocks and spans.
constexpr std::size_t kBorderBytes = std::size_t{64} * 1024;

std::array<void*, kLargeBatch> g_blocks;
// Never set, but the compiler must not know.
void* volatile g_null;

void Operations(const char* name, std::size_t count) {
  std::printf("%s %zu\n", name, count);
}

void Warm(std::size_t bytes) {
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < kWarm; ++i) g_blocks[i] = std::malloc(bytes);
    for (std::size_t i = 0; i < kWarm; ++i) std::free(g_blocks[i]);
  }
}

void Fill(std::size_t count, std::size_t bytes) {
  for (std::size_t i = 0; i < count; ++i) g_blocks[i] = std::malloc(bytes);
}

void Empty(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) std::free(g_blocks[i]);
}

// All live at once, so that none has the heap of another, and begin and end one
// after the other: the order is always the same. Neighbours are of different
// threads.
void FillByThreads() {
  std::vector<std::thread> threads;
  std::binary_semaphore has_them{0};
  std::vector<std::unique_ptr<std::binary_semaphore>> may_end;
  for (std::size_t first = 0; first < kEnded; ++first) {
    may_end.push_back(std::make_unique<std::binary_semaphore>(0));
    threads.emplace_back([first, &has_them, &may_end = *may_end.back()] {
      for (std::size_t i = first; i < kEnded * kLeftByEach; i += kEnded) {
        g_blocks[i] = std::malloc(kTinyBytes);
      }
      has_them.release();
      may_end.acquire();
    });
    has_them.acquire();
  }
  for (std::size_t first = 0; first < kEnded; ++first) {
    may_end[first]->release();
    threads[first].join();
  }
}

void Batches(std::size_t count, std::size_t rounds) {
  for (std::size_t round = 0; round < rounds; ++round) {
    Fill(count, kTinyBytes);
    Empty(count);
  }
}

}  // namespace

// Seen by their names in the counter's output.
extern "C" {

__attribute__((noinline)) void Measured_malloc_tiny() {
  Fill(kFew, kTinyBytes);
}
__attribute__((noinline)) void Measured_free_tiny() { Empty(kFew); }
__attribute__((noinline)) void Measured_free_null() {
  for (std::size_t i = 0; i < kFew; ++i) std::free(g_null);
}
__attribute__((noinline)) void Measured_malloc_pool() {
  Fill(kFew, kPoolBytes);
}
__attribute__((noinline)) void Measured_free_pool() { Empty(kFew); }
__attribute__((noinline)) void Measured_free_pool_tight() { Empty(kFew); }
__attribute__((noinline)) void Measured_span() {
  for (std::size_t i = 0; i < kFew; ++i) std::free(std::malloc(kSpanBytes));
}
__attribute__((noinline)) void Measured_new_tiny() {
  for (std::size_t i = 0; i < kFew; ++i) {
    g_blocks[i] = ::operator new(kTinyBytes);
  }
}
__attribute__((noinline)) void Measured_delete_sized() {
  for (std::size_t i = 0; i < kFew; ++i) {
    ::operator delete(g_blocks[i], kTinyBytes);
  }
}
__attribute__((noinline)) void Measured_calloc_tiny() {
  for (std::size_t i = 0; i < kFew; ++i) {
    g_blocks[i] = std::calloc(1, kTinyBytes);
  }
}
__attribute__((noinline)) void Measured_aligned_alloc_tiny() {
  for (std::size_t i = 0; i < kFew; ++i) {
    g_blocks[i] = std::aligned_alloc(kTinyBytes, kTinyBytes);
  }
}
__attribute__((noinline)) void Measured_realloc_in_place() {
  for (std::size_t i = 0; i < kFew; ++i) {
    g_blocks[i] = std::realloc(g_blocks[i], kTinyBytes - i % 8);
  }
}
__attribute__((noinline)) void Measured_realloc_null() {
  for (std::size_t i = 0; i < kFew; ++i) {
    g_blocks[i] = std::realloc(g_null, kTinyBytes);
  }
}
__attribute__((noinline)) void Measured_realloc_span() {
  for (std::size_t i = 0; i < kFew; ++i) {
    g_blocks[0] = std::realloc(g_blocks[0], kSpanBytes + i % 8);
  }
}
__attribute__((noinline)) void Measured_realloc_border() {
  for (std::size_t i = 0; i < kFew; ++i) {
    g_blocks[0] = std::realloc(g_blocks[0], kBorderBytes + i % 2);
  }
}
__attribute__((noinline)) void Measured_realloc_moves() {
  for (std::size_t i = 0; i < kFew; ++i) {
    g_blocks[i] = std::realloc(g_blocks[i], 2 * kTinyBytes);
  }
}
__attribute__((noinline)) void Measured_usable_size() {
  for (std::size_t i = 0; i < kFew; ++i) {
    if (malloc_usable_size(g_blocks[i]) == 0) std::abort();
  }
}
__attribute__((noinline)) void Measured_batch_1000() {
  Batches(kBatch, kRounds);
}
__attribute__((noinline)) void Measured_batch_20000() {
  Batches(kLargeBatch, kRounds);
}
__attribute__((noinline)) void Measured_free_remote() { Empty(kRemoteBatch); }
__attribute__((noinline)) void Measured_free_ended() {
  Empty(kEnded * kLeftByEach);
}

}  // extern "C"

static void MeasureMany() {
  Batches(kLargeBatch, 2);
  Measured_batch_1000();
  Operations("batch_1000", 2 * kBatch * kRounds);
  Measured_batch_20000();
  Operations("batch_20000", 2 * kLargeBatch * kRounds);
  for (int round = 0; round < 2; ++round) {
    Fill(kRemoteBatch, kTinyBytes);
    std::thread([] { Empty(kRemoteBatch); }).join();
  }
  Fill(kRemoteBatch, kTinyBytes);
  std::thread(Measured_free_remote).join();
  Operations("free_remote", kRemoteBatch);
  FillByThreads();
  Measured_free_ended();
  Operations("free_ended", kEnded * kLeftByEach);
}

int main() {
  Warm(kTinyBytes);
  Measured_malloc_tiny();
  Measured_free_tiny();
  Operations("malloc_tiny", kFew);
  Operations("free_tiny", kFew);
  Measured_free_null();
  Operations("free_null", kFew);
  Warm(kPoolBytes);
  Measured_malloc_pool();
  Measured_free_pool();
  Operations("malloc_pool", kFew);
  Operations("free_pool", kFew);
  Warm(kTightBytes);
  Fill(kFew, kTightBytes);
  Measured_free_pool_tight();
  Operations("free_pool_tight", kFew);
  Warm(kSpanBytes);
  Measured_span();
  Operations("span", kFew);
  Warm(kTinyBytes);
  Measured_new_tiny();
  Measured_delete_sized();
  Operations("new_tiny", kFew);
  Operations("delete_sized", kFew);
  Measured_calloc_tiny();
  Operations("calloc_tiny", kFew);
  Measured_realloc_in_place();
  Operations("realloc_in_place", kFew);
  Measured_usable_size();
  Operations("usable_size", kFew);
  Empty(kFew);
  // The class of aligned ones, with a canary and without.
  Warm(2 * kTinyBytes - 8);
  Measured_aligned_alloc_tiny();
  Operations("aligned_alloc_tiny", kFew);
  Empty(kFew);
  Measured_realloc_null();
  Operations("realloc_null", kFew);
  Empty(kFew);
  Warm(2 * kTinyBytes);
  Fill(kFew, kTinyBytes);
  Measured_realloc_moves();
  Operations("realloc_moves", kFew);
  Empty(kFew);
  Fill(1, kSpanBytes);
  Measured_realloc_span();
  Operations("realloc_span", kFew);
  Empty(1);
  Fill(1, kBorderBytes + 1);
  Measured_realloc_border();
  Operations("realloc_border", kFew);
  Empty(1);
  MeasureMany();
  return 0;
}
