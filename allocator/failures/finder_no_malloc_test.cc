// Finding limits, callers and modules allocates nothing: this program counts
// its calls of malloc.
#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "allocator/failures/limit_finder.h"
#include "allocator/process/process.h"
#include "allocator/stacks/cached_unwinder.h"
#include "allocator/stacks/call_stack.h"
#include "allocator/stacks/modules.h"
#include "gtest/gtest.h"

// glibc's malloc by its other name.
extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* __libc_calloc(std::size_t count, std::size_t size);
extern "C" void* __libc_realloc(void* block, std::size_t size);

namespace {
// Written and read by the one thread of this test.
std::atomic<unsigned> g_calls{0};
}  // namespace

extern "C" void* malloc(std::size_t size) {
  g_calls.fetch_add(1);
  return __libc_malloc(size);
}
extern "C" void* calloc(std::size_t count, std::size_t size) {
  g_calls.fetch_add(1);
  return __libc_calloc(count, size);
}
extern "C" void* realloc(void* block, std::size_t size) {
  g_calls.fetch_add(1);
  return __libc_realloc(block, size);
}

namespace hakmem {
namespace {

template <typename Function>
unsigned CallsIn(Function function) {
  const unsigned before = g_calls.load();
  function();
  return g_calls.load() - before;
}

TEST(FinderNoMallocTest, TheCountCounts) {
  EXPECT_EQ(CallsIn([] {
              int* volatile block = new int;
              delete block;
            }),
            1u);
}

TEST(FinderNoMallocTest, FindingALimitAllocatesNothing) {
  LimitReport report;
  for (const int error_number : {ENOMEM, EAGAIN, EEXIST}) {
    EXPECT_EQ(CallsIn([&] { FindLimit(1 << 20, error_number, report); }), 0u);
    EXPECT_GT(report.count, 0u);
  }
}

TEST(FinderNoMallocTest, FindingCallersAllocatesNothing) {
  CallStack stack;
  EXPECT_EQ(CallsIn([&] { UnwindOwnStack(__builtin_frame_address(0), stack); }),
            0u);
  EXPECT_GT(stack.count, 3u);
}

TEST(FinderNoMallocTest, FindingModulesAllocatesNothing) {
  ModuleOf module;
  const auto in_libc =
      reinterpret_cast<std::uintptr_t>(dlsym(RTLD_NEXT, "qsort"));
  EXPECT_EQ(CallsIn([&] { FindModule(in_libc, module); }), 0u);
  EXPECT_NE(module.path[0], '\0');
  EXPECT_EQ(CallsIn([&] { FindModule(1, module); }), 0u);
  char name[16];
  EXPECT_EQ(CallsIn([&] { ThreadName(name); }), 0u);
}

}  // namespace
}  // namespace hakmem
