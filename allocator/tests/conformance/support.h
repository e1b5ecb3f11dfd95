// Shared by the conformance tests.
//
// The same tests run with each variant of hakmem linked in, with each variant
// preloaded, and on the system's malloc, which has to pass wherever hakmem
// claims its behaviour.
#ifndef HAKMEM_ALLOCATOR_TESTS_CONFORMANCE_SUPPORT_H_
#define HAKMEM_ALLOCATOR_TESTS_CONFORMANCE_SUPPORT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "allocator/hakmem.h"
#include "allocator/tests/opaque.h"

namespace hakmem {

inline constexpr std::size_t kTestKiB = 1024;
inline constexpr std::size_t kTestMiB = 1024 * kTestKiB;

// One size of each route, and its neighbours: Tiny, Pool, Span, Huge.
inline constexpr std::size_t kRouteSizes[] = {1,
                                              16,
                                              17,
                                              1000,
                                              kTestKiB,
                                              1025,
                                              20000,
                                              64 * kTestKiB,
                                              64 * kTestKiB + 1,
                                              300000,
                                              3 * kTestMiB,
                                              256 * kTestMiB + 1};
inline constexpr std::size_t kOfEachRoute[] = {100, 5000, 200000,
                                               300 * kTestMiB};

inline bool IsAlignedTo(const void* pointer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

// Bytes that depend on `seed`; of large blocks only the ends and some between.
void FillBlock(void* block, std::size_t size, unsigned seed);
bool BlockHolds(const void* block, std::size_t size, unsigned seed);

// The memory that the process has now.
std::size_t ResidentBytes();

// hakmem.h's functions, or null on another allocator.
struct HakmemApi {
  const char* (*version)() = nullptr;
  const char* (*variant)() = nullptr;
  std::size_t (*get_statistics)(hakmem_statistics*, std::size_t) = nullptr;
  std::size_t (*purge)() = nullptr;
  std::size_t (*prewarm)(std::size_t, std::size_t) = nullptr;
  std::size_t (*failure_events)(hakmem_failure_event*, std::size_t,
                                std::size_t) = nullptr;
  int (*heap_profile)(int) = nullptr;
  int (*write_openmetrics)(int) = nullptr;
  void (*set_failure_handler)(hakmem_failure_handler, void*) = nullptr;
  void (*free_sized)(void*, std::size_t) = nullptr;
  void (*free_aligned_sized)(void*, std::size_t, std::size_t) = nullptr;
};
const HakmemApi& Hakmem();
inline bool OnHakmem() { return Hakmem().version != nullptr; }

// Runs `body` in a child process made by fork; returns its wait status.
int RunInFork(const std::function<void()>& body);

// A run of this program with one test, in a fresh process.
struct ChildRun {
  std::string test;                           // a DISABLED_ one
  std::vector<std::string> environment = {};  // NAME=VALUE, added
  std::function<void()> before_exec = {};     // in the child
};
struct ChildResult {
  int wait_status = 0;
  std::string output;  // of stdout and stderr
};
ChildResult RunChild(const ChildRun& run);
// Whether a line of its output ends with `text` and the child's name and id.
bool ToldWithProcess(const ChildResult& child, const std::string& text);
bool ExitedWithZero(int wait_status);
// The first line of `text` with `part` in it; "": none.
std::string FirstLineWith(const std::string& text, const std::string& part);

}  // namespace hakmem

#define HAKMEM_ONLY_ON_HAKMEM()                               \
  if (!::hakmem::OnHakmem()) {                                \
    GTEST_SKIP() << "not promised by the system's allocator"; \
  }

#endif  // HAKMEM_ALLOCATOR_TESTS_CONFORMANCE_SUPPORT_H_
