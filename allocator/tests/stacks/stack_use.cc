// How much stack the calls take: they run on a coroutine's, which is painted
// before. Prints what each step took at most; fails beyond BYTES, its argument.
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "allocator/tests/opaque.h"

namespace {

using hakmem::Opaque;

constexpr int kPaint = 0xa5;
constexpr std::size_t kBlocks = 100'000;

constinit char g_stack[256 * 1024] = "";
constinit void* g_blocks[kBlocks] = {};
void (*g_step)();

std::size_t BytesOf(void (*step)()) {
  static ucontext_t here;
  static ucontext_t coroutine;
  memset(g_stack, kPaint, sizeof(g_stack));
  g_step = step;
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = g_stack;
  coroutine.uc_stack.ss_size = sizeof(g_stack);
  coroutine.uc_link = &here;
  makecontext(&coroutine, [] { g_step(); }, 0);
  swapcontext(&here, &coroutine);
  std::size_t clean = 0;
  while (static_cast<unsigned char>(g_stack[clean]) == kPaint) ++clean;
  return sizeof(g_stack) - clean;
}

void Nothing() {}

void Allocate() {
  for (void*& block : g_blocks) block = malloc(Opaque(std::size_t{200}));
}

void Free() {
  for (void*& block : g_blocks) free(Opaque(block));
}

void EachClass() {
  for (std::size_t bytes = 1; bytes < 60'000; bytes += bytes / 8 + 1) {
    for (int i = 0; i < 40; ++i) g_blocks[i] = malloc(bytes);
    for (int i = 0; i < 40; ++i) free(Opaque(g_blocks[i]));
  }
}

void Large() {
  for (std::size_t bytes = 100'000; bytes < 400'000'000; bytes *= 3) {
    char* block = static_cast<char*>(Opaque(malloc(bytes)));
    memset(block, 1, 100'000);
    void* const neighbour = Opaque(malloc(bytes));
    free(Opaque(realloc(block, 2 * bytes)));
    free(neighbour);
    free(Opaque(calloc(1, bytes)));
  }
}

void Refused() { free(Opaque(malloc(Opaque(std::size_t{1} << 60)))); }

// By the kernel.
void RefusedByLimit() {
  constexpr rlimit kAddresses = {std::size_t{4} << 30, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &kAddresses);
  free(Opaque(malloc(Opaque(std::size_t{8} << 30))));
}

void Trim() { malloc_trim(0); }

void* AllocateBeside(void* /*unused*/) {
  Allocate();
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr struct {
    const char* name;
    void (*run)();
  } kSteps[] = {{"first", EachClass},     {"malloc", Allocate},
                {"free", Free},           {"all classes", EachClass},
                {"large", Large},         {"another's", Free},
                {"refused", Refused},     {"trim", Trim},
                {"limit", RefusedByLimit}};
  const std::size_t most = argc > 1 ? strtoul(argv[1], nullptr, 10) : 0;
  const std::size_t own = BytesOf(Nothing);
  bool fits = true;
  for (const auto& [name, run] : kSteps) {
    pthread_t thread;
    if (strcmp(name, "another's") == 0 &&
        (pthread_create(&thread, nullptr, AllocateBeside, nullptr) != 0 ||
         pthread_join(thread, nullptr) != 0)) {
      return 1;
    }
    const std::size_t bytes = BytesOf(run) - own;
    printf("%s: %zu\n", name, bytes);
    fits = fits && bytes <= most;
  }
  return fits ? 0 : 1;
}
