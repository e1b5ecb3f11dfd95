// A program whose calls of malloc are known: traced_program MODE. In C but for
// the file's name, so that no C++ library allocates beside it.

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int kBlocks = 1000;
constexpr int kRounds = 20;
constexpr int kThreads = 4;

using Blocks = void* [kBlocks];

void Allocate(Blocks& blocks) {
  for (int i = 0; i < kBlocks; ++i) {
    const size_t size = static_cast<size_t>(i % 50 * 40 + 1);
    switch (i % 4) {
      case 0:
        blocks[i] = malloc(size);
        break;
      case 1:
        blocks[i] = calloc(2, size);
        break;
      case 2:
        blocks[i] = aligned_alloc(256, size);
        break;
      default:
        blocks[i] = realloc(malloc(size), 3 * size);
    }
    if (blocks[i] == nullptr) abort();
    memset(blocks[i], 1, size);
  }
}

void Free(Blocks& blocks) {
  for (void* block : blocks) free(block);
}

void* AllocateInThread(void* argument) {
  Allocate(*static_cast<Blocks*>(argument));
  return nullptr;
}

void FreesAll() {
  static Blocks blocks;
  for (int round = 0; round < kRounds; ++round) {
    Allocate(blocks);
    Free(blocks);
  }
}

// What the threads allocate, the main thread frees.
void FreesOthers() {
  static Blocks blocks[kThreads];
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], nullptr, AllocateInThread, blocks[i]);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], nullptr);
    Free(blocks[i]);
  }
}

// The child frees its parent's block and one of its own.
void Forks() {
  void* const block = malloc(100);
  const pid_t child = fork();
  FreesAll();
  free(block);
  if (child == 0) exit(0);
  int status = 0;
  waitpid(child, &status, 0);
}

void LeaksOne() {
  FreesAll();
  void* volatile leak = malloc(12345);
  (void)leak;
}

// Too large for any memory, then for HAKMEM_HEAP_LIMIT=64M; what fits is
// served.
int Fails() {
  volatile size_t size = SIZE_MAX / 2;
  if (malloc(size) != nullptr) return 1;
  size = 100 << 20;
  void* const block = malloc(1000);
  if (calloc(1, size) != nullptr || realloc(block, size) != nullptr) return 1;
  free(block);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const mode = argc == 2 ? argv[1] : "";
  if (strcmp(mode, "frees_all") == 0) {
    FreesAll();
  } else if (strcmp(mode, "frees_others") == 0) {
    FreesOthers();
  } else if (strcmp(mode, "forks") == 0) {
    Forks();
  } else if (strcmp(mode, "leaks") == 0) {
    LeaksOne();
  } else if (strcmp(mode, "crashes") == 0) {
    LeaksOne();
    raise(SIGSEGV);
  } else if (strcmp(mode, "double_free") == 0) {
    void* volatile block = malloc(10);
    free(block);
    free(block);
  } else if (strcmp(mode, "fails") == 0) {
    return Fails();
  } else {
    return 2;
  }
  return 0;
}
