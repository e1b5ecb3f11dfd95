// The life of a process: exit, signals, dlopen, fork.

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "allocator/process/test_waits.h"
#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

void UseSomeSizes() {
  std::vector<void*> blocks;
  for (std::size_t size = 1; size < 200000; size += 1 + size / 4) {
    void* const block = malloc(size);
    if (block == nullptr) _exit(3);
    FillBlock(block, size, 1);
    blocks.push_back(block);
  }
  std::size_t size = 1;
  for (void* block : blocks) {
    if (!BlockHolds(block, size, 1)) _exit(4);
    size += 1 + size / 4;
    free(block);
  }
}

// --- Exit --------------------------------------------------------------------

void* g_freed_at_exit = nullptr;

struct FreesInDestructor {
  ~FreesInDestructor() {
    free(g_freed_at_exit);
    UseSomeSizes();
    if (write(STDOUT_FILENO, "destructor ran\n", 15) != 15) _exit(5);
  }
};

TEST(Process, DISABLED_AllocatesAtExit) {
  static const FreesInDestructor frees_in_destructor;
  g_freed_at_exit = malloc(1000);
  atexit([] {
    UseSomeSizes();
    if (write(STDOUT_FILENO, "atexit ran\n", 11) != 11) _exit(5);
  });
}

TEST(Process, AtexitAndDestructorsMayAllocate) {
  const ChildResult child = RunChild({"Process.DISABLED_AllocatesAtExit"});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  EXPECT_NE(child.output.find("atexit ran\ndestructor ran\n"),
            std::string::npos)
      << child.output;
}

TEST(Process, DISABLED_ExitsFromAnotherThread) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop.load()) UseSomeSizes();
  });
  std::thread([] { exit(0); }).join();
}

TEST(Process, AnyThreadMayExit) {
  const ChildResult child =
      RunChild({"Process.DISABLED_ExitsFromAnotherThread"});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

// In the child of a fork, the thread that forks is the first.
TEST(Process, DISABLED_FirstThreadEndsBeforeTheLast) {
  std::thread([] {
    const pid_t child = fork();
    if (child == 0) {
      UseSomeSizes();
      std::thread([] {
        AwaitThat([] { return StateOf(getpid()) == 'Z'; });
        UseSomeSizes();
      }).detach();
      return;
    }
    // For ever, if it stays.
    int status = -1;
    waitpid(child, &status, 0);
    _exit(status == 0 ? 0 : 6);
  }).join();
}

// Whatever threads the allocator has for itself.
TEST(Process, EndsWithItsLastThread) {
  const char* const folder = getenv("TEST_TMPDIR");
  const std::string trace = folder != nullptr ? folder : "/tmp";
  for (const std::vector<std::string>& environment :
       {std::vector<std::string>{},
        {"HAKMEM_BACKGROUND=2", "HAKMEM_DECAY_MS=50"},
        {"HAKMEM_TRACE=" + trace + "/last_thread.%p"}}) {
    const ChildResult child =
        RunChild({.test = "Process.DISABLED_FirstThreadEndsBeforeTheLast",
                  .environment = environment});
    EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  }
}

// --- Signals
// -------------------------------------------------------------------

std::atomic<int> g_signals{0};

TEST(Process, HandlersThatInterruptUserCodeMayAllocate) {
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = [](int) {
    UseSomeSizes();
    g_signals.fetch_add(1);
  };
  g_signals = 0;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  TestThread sender([self = pthread_self()] {
    for (int i = 0; i < 50; ++i) {
      pthread_kill(self, SIGUSR1);
      AwaitThat([i] { return g_signals > i; });
    }
  });
  // User code that is interrupted, and calls nothing.
  std::uint64_t sum = 0;
  while (g_signals.load() < 50) sum = Opaque(sum) * 3 + 1;
  sender.Join();
  ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
  EXPECT_EQ(g_signals.load(), 50);
}

TEST(Process, HandlerOnAnAlternateStackMayAllocate) {
  std::vector<char> memory(32 * kTestKiB);
  const stack_t stack = {memory.data(), 0, memory.size()};
  stack_t stack_before = {};
  ASSERT_EQ(sigaltstack(&stack, &stack_before), 0);
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = [](int) {
    UseSomeSizes();
    g_signals.fetch_add(1);
  };
  action.sa_flags = SA_ONSTACK;
  g_signals = 0;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  raise(SIGUSR1);
  EXPECT_EQ(g_signals.load(), 1);
  ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
  ASSERT_EQ(sigaltstack(&stack_before, nullptr), 0);
}

// --- dlopen
// ----------------------------------------------------------------------

// What libplugin.so offers, once it is open.
struct Plugin {
  explicit Plugin(void* library)
      : allocate(reinterpret_cast<void* (*)(std::size_t)>(
            dlsym(library, "PluginNew"))),
        release(
            reinterpret_cast<void (*)(void*)>(dlsym(library, "PluginDelete"))) {
  }

  void* (*allocate)(std::size_t);
  void (*release)(void*);
};

TEST(Process, LibrariesComeAndGo) {
  constexpr char kPlugin[] = "allocator/tests/conformance/libplugin.so";
  std::vector<void*> left_behind;
  for (int round = 0; round < 50; ++round) {
    void* const library = dlopen(kPlugin, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const Plugin plugin(library);
    ASSERT_NE(plugin.allocate, nullptr);
    ASSERT_NE(plugin.release, nullptr);
    plugin.release(plugin.allocate(100));
    plugin.release(malloc(100));
    free(plugin.allocate(5000));
    void* const kept = plugin.allocate(300);
    FillBlock(kept, 300, 2);
    left_behind.push_back(kept);
    EXPECT_EQ(dlclose(library), 0);
  }
  for (void* block : left_behind) {
    EXPECT_TRUE(BlockHolds(block, 300, 2));
    free(block);
  }
}

// A library opened so would call libc's malloc and free.
TEST(Process, LibrariesThatLookIntoThemselvesFirst) {
  // By its name alone: from the search path of the program, which called.
  void* const library = dlopen("libplugin.so", RTLD_NOW | RTLD_DEEPBIND);
  ASSERT_NE(library, nullptr) << dlerror();
  const Plugin plugin(library);
  ASSERT_NE(plugin.allocate, nullptr);
  ASSERT_NE(plugin.release, nullptr);
  free(plugin.allocate(100));
  plugin.release(malloc(100));
  EXPECT_EQ(dlclose(library), 0);
}

// --- fork
// --------------------------------------------------------------------------

TEST(Process, ForkWhileOtherThreadsAllocate) {
  constexpr int kThreads = 4;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      while (!stop.load()) UseSomeSizes();
    });
  }
  for (int round = 0; round < 100; ++round) {
    void* const from_parent = malloc(100);
    FillBlock(from_parent, 100, 1);
    const int status = RunInFork([&] {
      if (!BlockHolds(from_parent, 100, 1)) _exit(2);
      free(from_parent);
      UseSomeSizes();
      std::thread(&UseSomeSizes).join();
      malloc_trim(0);
      UseSomeSizes();
    });
    EXPECT_TRUE(ExitedWithZero(status)) << status;
    free(from_parent);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Process, ForkFromAThread) {
  for (int round = 0; round < 20; ++round) {
    std::thread([] {
      void* const block = malloc(64);
      const int status = RunInFork([&] {
        free(block);
        UseSomeSizes();
      });
      EXPECT_TRUE(ExitedWithZero(status)) << status;
      free(block);
    }).join();
  }
}

TEST(Process, ChildrenOfChildren) {
  const int status = RunInFork([] {
    UseSomeSizes();
    std::thread busy(&UseSomeSizes);
    const int inner = RunInFork([] {
      UseSomeSizes();
      std::thread(&UseSomeSizes).join();
    });
    busy.join();
    if (!ExitedWithZero(inner)) _exit(6);
  });
  EXPECT_TRUE(ExitedWithZero(status)) << status;
}

// Handlers of others run before and after ours, and may allocate.
TEST(Process, ForkHandlersMayAllocate) {
  static std::atomic<int> runs{0};
  static const auto handler = [] {
    UseSomeSizes();
    runs.fetch_add(1);
  };
  // Once: a handler stays.
  static const int registered = pthread_atfork(handler, handler, handler);
  ASSERT_EQ(registered, 0);
  runs = 0;
  EXPECT_TRUE(ExitedWithZero(RunInFork([] {
    if (runs.load() != 2) _exit(2);
  })));
  EXPECT_EQ(runs.load(), 2);
}

// When fork is called, the process has one thread.
TEST(Process, DISABLED_AForkHandlerStartsAThread) {
  const auto start = [] { std::thread([] {}).join(); };
  ASSERT_EQ(pthread_atfork(start, nullptr, nullptr), 0);
  const int status = RunInFork([] {
    // One that waits for itself does so for ever.
    std::thread([] { fclose(fopen("/dev/null", "w")); }).join();
  });
  EXPECT_TRUE(ExitedWithZero(status)) << status;
}

TEST(Process, ForkHandlersMayStartThreads) {
  const ChildResult child =
      RunChild({"Process.DISABLED_AForkHandlerStartsAThread"});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

}  // namespace
}  // namespace hakmem
