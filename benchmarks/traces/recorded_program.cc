// What record_test.sh records: four threads that hand blocks to each other,
// realloc and aligned blocks, and a child.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kSlots = 64;

// Blocks that are nobody's; each thread swaps its own for one of them.
std::array<std::atomic<void*>, kSlots> slots;

void Work(unsigned seed) {
  for (unsigned i = 0; i < 5000; ++i) {
    seed = seed * 1664525 + 1013904223;
    const std::size_t size = seed >> 20;
    void* block = nullptr;
    switch (seed % 5) {
      case 0:
        block = std::calloc(size + 1, 3);
        break;
      case 1:
        block = std::aligned_alloc(64, (size + 64) / 64 * 64);
        break;
      case 2:
        if (posix_memalign(&block, 4096, size) != 0) std::abort();
        break;
      default:
        block = std::malloc(size);
    }
    if (block == nullptr) std::abort();
    void* old = slots[(seed >> 10) % kSlots].exchange(block);
    if (seed % 3 == 0) old = std::realloc(old, 2 * size + 1);
    std::free(old);
  }
}

}  // namespace

int main() {
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) threads.emplace_back(Work, seed);
  for (std::thread& thread : threads) thread.join();
  const pid_t child = fork();
  if (child == 0) {
    Work(7);
    _exit(0);
  }
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  return status == 0 ? 0 : 1;
}
