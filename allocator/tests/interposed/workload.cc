// Blocks of every route in several threads and in the child of a fork. Ends
// with "done" on standard output; with the argument `double_free`, by a misuse.
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "allocator/tests/opaque.h"

namespace {

using hakmem::Opaque;

void Check(bool good, const char* what) {
  if (good) return;
  printf("failed: %s\n", what);
  fflush(stdout);
  _exit(1);
}

void Use() {
  for (const std::size_t size : {40ul, 900ul, 30'000ul, 200'000ul, 2'500'000ul,
                                 6'000'000ul, 300'000'000ul}) {
    char* blocks[4];
    for (char*& block : blocks) {
      block = static_cast<char*>(Opaque(malloc(size)));
      Check(block != nullptr, "malloc");
      block[0] = block[size / 2] = block[size - 1] = 'x';
    }
    for (char*& block : blocks) {
      block = static_cast<char*>(Opaque(realloc(block, size + size / 2)));
      Check(block != nullptr && block[size / 2] == 'x', "realloc");
      free(block);
      block = static_cast<char*>(Opaque(calloc(1, size)));
      Check(block != nullptr && block[0] == 0 && block[size / 2] == 0 &&
                block[size - 1] == 0,
            "calloc");
    }
    for (char* block : blocks) free(block);
  }
  // So many that memory goes back.
  constexpr int kBlocks = 3000;
  static thread_local void* many[kBlocks];
  for (void*& block : many) block = memset(Opaque(malloc(5000)), 1, 5000);
  for (void* block : many) free(block);
}

void* InThread(void* from_other) {
  free(from_other);
  Use();
  return Opaque(malloc(1000));
}

void InThreads() {
  for (int round = 0; round < 3; ++round) {
    pthread_t threads[4];
    for (pthread_t& thread : threads) {
      Check(pthread_create(&thread, nullptr, &InThread, malloc(500)) == 0,
            "pthread_create");
    }
    for (const pthread_t thread : threads) {
      void* block = nullptr;
      pthread_join(thread, &block);
      free(block);
    }
  }
}

void InChild() {
  const pid_t child = fork();
  Check(child >= 0, "fork");
  if (child == 0) {
    Use();
    InThreads();
    _exit(0);
  }
  int status = 1;
  Check(waitpid(child, &status, 0) == child && status == 0, "child");
}

}  // namespace

int main(int argc, char** argv) {
  Use();
  InThreads();
  InChild();
  malloc_trim(0);
  if (argc == 2 && strcmp(argv[1], "double_free") == 0) {
    void* const block = Opaque(malloc(100));
    free(Opaque(block));
    free(Opaque(block));
  }
  puts("done");
  return 0;
}
