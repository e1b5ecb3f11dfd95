// Allocations on stacks that are no thread's own.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "allocator/stacks/test_frame_pointer.h"
#include "allocator/tests/conformance/support.h"

namespace hakmem {
namespace {

// Stacks of coroutines, side by side, and above them a thread's.
constexpr std::size_t kStackBytes = 256 * kTestKiB;
constexpr std::size_t kStacks = 3;

ucontext_t g_thread;
ucontext_t g_coroutine;
char* g_pool = nullptr;

// Blocks so long that each is sampled, as nearly each is in variants that
// sample; those of each route.
void Allocate(std::uintptr_t frame_pointer) {
  for (const std::size_t size :
       {std::size_t{100}, std::size_t{5000}, 200 * kTestKiB, 16 * kTestMiB}) {
    void* const block =
        CallWithFramePointer(size, frame_pointer, Opaque(&std::malloc));
    if (block == nullptr) _exit(2);
    std::memset(block, 1, 100);
    std::free(Opaque(block));
  }
}

void OnCoroutine() {
  // Its own stack, from here to its end and beyond, is there for now.
  Allocate(reinterpret_cast<std::uintptr_t>(g_pool + kStackBytes - 64));
  // The stack between this one and the thread's goes; nobody else gets its
  // place.
  char* const between = g_pool + kStackBytes;
  if (mmap(between, kStackBytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
    _exit(3);
  }
  for (const std::size_t offset :
       {std::size_t{0}, std::size_t{64}, kStackBytes / 2, kStackBytes - 16}) {
    Allocate(reinterpret_cast<std::uintptr_t>(between + offset));
  }
  swapcontext(&g_coroutine, &g_thread);
}

void* RunCoroutine(void*) {
  getcontext(&g_coroutine);
  g_coroutine.uc_stack.ss_sp = g_pool;
  g_coroutine.uc_stack.ss_size = kStackBytes;
  makecontext(&g_coroutine, OnCoroutine, 0);
  swapcontext(&g_thread, &g_coroutine);
  Allocate(reinterpret_cast<std::uintptr_t>(g_pool + kStackBytes));
  return nullptr;
}

// Nobody reads a stack that is no longer there.
TEST(CoroutinesTest, BelowAThreadsStackOneGoes) {
  const int status = RunInFork([] {
    void* const memory =
        mmap(nullptr, kStacks * kStackBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) _exit(4);
    g_pool = static_cast<char*>(memory);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_t thread;
    if (pthread_attr_setstack(&attributes, g_pool + 2 * kStackBytes,
                              kStackBytes) != 0 ||
        pthread_create(&thread, &attributes, &RunCoroutine, nullptr) != 0) {
      _exit(5);
    }
    pthread_join(thread, nullptr);
  });
  EXPECT_TRUE(ExitedWithZero(status)) << status;
}

// On the first thread, whose own stack lies elsewhere.
TEST(CoroutinesTest, OfTheFirstThreadOneGoes) {
  const int status = RunInFork([] {
    void* const memory = mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) _exit(4);
    g_pool = static_cast<char*>(memory);
    RunCoroutine(nullptr);
  });
  EXPECT_TRUE(ExitedWithZero(status)) << status;
}

// A handler on a stack of its own.
void OnSignal(int) {
  Allocate(reinterpret_cast<std::uintptr_t>(g_pool + kStackBytes));
}

TEST(CoroutinesTest, OnASignalsStackAtTheEndOfWhatIsMapped) {
  const int status = RunInFork([] {
    void* const memory = mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) _exit(4);
    g_pool = static_cast<char*>(memory);
    mprotect(g_pool + kStackBytes, kStackBytes, PROT_NONE);
    stack_t stack = {};
    stack.ss_sp = memory;
    stack.ss_size = kStackBytes;
    struct sigaction action = {};
    action.sa_handler = &OnSignal;
    action.sa_flags = SA_ONSTACK;
    if (sigaltstack(&stack, nullptr) != 0 ||
        sigaction(SIGUSR1, &action, nullptr) != 0) {
      _exit(5);
    }
    raise(SIGUSR1);
  });
  EXPECT_TRUE(ExitedWithZero(status)) << status;
}

}  // namespace
}  // namespace hakmem
