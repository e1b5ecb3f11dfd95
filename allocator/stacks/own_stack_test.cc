#include "allocator/stacks/own_stack.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "allocator/base/compiler.h"
#include "allocator/platform/fake_sandbox.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {
namespace {

std::uintptr_t AddressOf(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

std::uintptr_t PageBytes() {
  return static_cast<std::uintptr_t>(getpagesize());
}

std::uintptr_t PageAfter(std::uintptr_t address) {
  return address - address % 4096 + 4096;
}

// A place on the stack that runs, and what is known of it.
HAK_NOINLINE KnownStack KnownHere() {
  return KnownStackAt(AddressOf(__builtin_frame_address(0)));
}

// Both walks from the same frame.
HAK_NOINLINE unsigned Compare() {
  const auto* const frame =
      static_cast<const FrameRecord*>(__builtin_frame_address(0));
  CallStack fast;
  CaptureStack(frame, fast);
  CallStack copied;
  CaptureStackAt({.instruction = frame->return_address, .frame = frame->caller},
                 copied);
  EXPECT_EQ(std::vector(fast.addresses, fast.addresses + fast.count),
            std::vector(copied.addresses, copied.addresses + copied.count));
  return fast.count;
}

HAK_NOINLINE unsigned CompareDeep(int depth) {
  volatile char room[3000] = {};
  room[0] = 1;
  const unsigned count = depth > 0 ? CompareDeep(depth - 1) : Compare();
  EXPECT_EQ(room[0], 1);
  return count;
}

TEST(OwnStackTest, SaysTheSameAsCopies) {
  EXPECT_GT(Compare(), 2U);
  EXPECT_GT(CompareDeep(0), 2U);
  EXPECT_EQ(CompareDeep(100), CallStack::kMaxFrames);
  EXPECT_GT(Compare(), 2U);
}

// The stack that libc says is the calling thread's.
KnownStack Recorded() {
  pthread_attr_t attributes;
  void* begin = nullptr;
  std::size_t bytes = 0;
  EXPECT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
  EXPECT_EQ(pthread_attr_getstack(&attributes, &begin, &bytes), 0);
  pthread_attr_destroy(&attributes);
  return {AddressOf(begin), AddressOf(begin) + bytes};
}

TEST(OwnStackTest, OfOtherThreadsIsWhatLibcSays) {
  NoteStacks();
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      EXPECT_EQ(KnownHere().end, Recorded().end);
      EXPECT_GT(CompareDeep(30), 30U);
    }).join();
  }
}

TEST(OwnStackTest, OfTheFirstThreadEndsWithTheFirstFrame) {
  const KnownStack known = KnownHere();
  EXPECT_GT(known.end, AddressOf(__builtin_frame_address(0)));
  EXPECT_LE(known.end, Recorded().end);
}

HAK_NOINLINE bool IsKnownDeep(int depth) {
  volatile char room[3000] = {};
  room[0] = 1;
  const KnownStack known = KnownHere();
  return (depth == 0 ? known.end > PageAfter(known.begin) + 4096
                     : IsKnownDeep(depth - 1)) &&
         room[0] == 1;
}

// The kernel is asked once for each page by which the stack gets deeper.
TEST(OwnStackTest, WhatIsKnownOnceIsNotAskedAgain) {
  EXPECT_EXIT(
      {
        if (!IsKnownDeep(100)) _exit(1);
        if (!ForbidSystemCalls({SYS_mremap})) _exit(77);
        if (!IsKnownDeep(100) || !IsKnownDeep(3)) _exit(2);
        // Nor is anything believed that it does not say.
        _exit(IsKnownDeep(200) ? 3 : 42);
      },
      testing::ExitedWithCode(42), "");
}

TEST(OwnStackTest, InAChildOfAnotherThreadToo) {
  NoteStacks();
  std::thread([] {
    const KnownStack before = KnownHere();
    const pid_t child = fork();
    if (child == 0) {
      const bool forbidden = ForbidSystemCalls(
          {SYS_process_vm_readv, SYS_openat, SYS_mremap, SYS_getpid});
      const KnownStack known = KnownHere();
      _exit(!forbidden || known.end == before.end ? 42 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 42);
  }).join();
}

// Stacks beside each other, as pools of coroutines have them, and above them
// the one that a thread was given.
constexpr std::size_t kStackBytes = std::size_t{256} * 1024;
struct Scene {
  char* pool = nullptr;
  ucontext_t thread = {};
  ucontext_t coroutine = {};
  unsigned count = 0;
  KnownStack known = {};
  std::uintptr_t frame = 0;
};
Scene g_scene;

HAK_NOINLINE void OnCoroutine() {
  g_scene.known = KnownHere();
  g_scene.frame = AddressOf(__builtin_frame_address(0));
  // The next one's stack goes, and a frame pointer leads there.
  mmap(g_scene.pool + kStackBytes, kStackBytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  FrameRecord record = {AddressOf(g_scene.pool + kStackBytes + 64), 0x10000};
  CallStack stack;
  CaptureStack(&record, stack);
  g_scene.count = stack.count;
  swapcontext(&g_scene.coroutine, &g_scene.thread);
}

void* RunCoroutine(void*) {
  EXPECT_EQ(KnownHere().end, Recorded().end);
  getcontext(&g_scene.coroutine);
  g_scene.coroutine.uc_stack.ss_sp = g_scene.pool;
  g_scene.coroutine.uc_stack.ss_size = kStackBytes;
  makecontext(&g_scene.coroutine, OnCoroutine, 0);
  swapcontext(&g_scene.thread, &g_scene.coroutine);
  EXPECT_EQ(KnownHere().end, Recorded().end);
  return nullptr;
}

TEST(OwnStackTest, OfACoroutineIsThePageOfTheFrame) {
  NoteStacks();
  void* const memory = mmap(nullptr, 3 * kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  g_scene.pool = static_cast<char*>(memory);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, g_scene.pool + 2 * kStackBytes,
                                  kStackBytes),
            0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, &RunCoroutine, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(g_scene.count, 1U);
  EXPECT_LE(g_scene.known.end, PageAfter(g_scene.frame));
  munmap(memory, 3 * kStackBytes);
}

// Where the first stack's mapping begins.
std::uintptr_t FirstStackBegin() {
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  char line[512];
  unsigned long begin = 0;
  while (maps != nullptr && std::fgets(line, sizeof(line), maps) != nullptr) {
    if (std::strstr(line, "[stack]") == nullptr) continue;
    if (std::sscanf(line, "%lx", &begin) != 1) begin = 0;
    break;
  }
  if (maps != nullptr) std::fclose(maps);
  return begin;
}

// A stack that somebody has put right below the first thread's.
TEST(OwnStackTest, WhatIsMappedBelowTheFirstStackIsNotTheFirstStacks) {
  EXPECT_EXIT(
      {
        // As deep as it gets here.
        if (!IsKnownDeep(100)) _exit(1);
        const std::uintptr_t begin = FirstStackBegin();
        const std::uintptr_t page = PageBytes();
        void* const below =
            mmap(reinterpret_cast<void*>(begin - 16 * page), 16 * page,
                 PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (begin == 0 || below == MAP_FAILED) _exit(77);
        for (std::uintptr_t frame = AddressOf(below); frame < begin;
             frame += page) {
          if (KnownStackAt(frame).end != frame + 4096) _exit(2);
        }
        _exit(IsKnownDeep(100) ? 42 : 3);
      },
      testing::ExitedWithCode(42), "");
}

TEST(OwnStackTest, ARecordAcrossPagesIsThereWhole) {
  const auto page = PageBytes();
  void* const memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::uintptr_t begin = AddressOf(memory);
  EXPECT_EQ(KnownStackAt(begin + 4096 - 16).end, begin + 4096);
  EXPECT_EQ(KnownStackAt(begin + 4096 - 8).end, begin + 8192);
  munmap(memory, 2 * page);
}

}  // namespace
}  // namespace hakmem
