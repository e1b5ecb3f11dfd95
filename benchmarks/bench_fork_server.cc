// A server that forks: the parent has a heap; each child replaces some of the
// parent's blocks, makes and frees a few of its own, and exits. What the
// allocator writes into shared pages is copied by the kernel.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

void* AllocateRandom(Random& random) {
  return AllocateTouched(random.Between(16, 1040));
}

[[noreturn]] void ServeRequest(std::vector<void*>& heap, std::uint64_t blocks,
                               std::uint64_t seed) {
  Random random(seed);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    Free(AllocateRandom(random));
    void*& slot = heap[random.Below(heap.size())];
    Free(slot);
    slot = AllocateRandom(random);
  }
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t children, heap_blocks, blocks, seed;
  ReadArguments(argc, argv,
                {{"CHILDREN", 500, &children},
                 {"HEAP_BLOCKS", 20'000, &heap_blocks},
                 {"BLOCKS", 500, &blocks},
                 {"SEED", 1, &seed, 0}});
  std::vector<void*> heap(heap_blocks);
  Random random(seed);
  for (void*& block : heap) block = AllocateRandom(random);
  Phase phase;
  for (std::uint64_t i = 0; i < children; ++i) {
    const pid_t child = fork();
    if (child == 0) ServeRequest(heap, blocks, seed + i);
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
      std::fprintf(stderr, "a child failed: status %d\n", status);
      return EXIT_FAILURE;
    }
  }
  phase.Stop();
  for (void* block : heap) Free(block);
  Report(phase, children);
}
