// What programs do about failures, and how failures come in programs.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "tools/provoke/attempt.h"
#include "tools/provoke/cases.h"

namespace hakmem::provoke {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kMinusTwo = SIZE_MAX - 1;

Verdict Storm(const Settings&) {
  constexpr std::uint64_t kCallCount = 10'000;
  for (std::uint64_t i = 0; i < kCallCount; ++i) Try({.size = kMinusTwo});
  return {.provoked = TheLog().failed == kCallCount};
}

void* FailInThread(void*) {
  pthread_setname_np(pthread_self(), "provoker");
  Try({.call = Call::kCalloc, .size = kMinusTwo});
  return nullptr;
}

Verdict Thread(const Settings&) {
  pthread_t thread = {};
  if (pthread_create(&thread, nullptr, FailInThread, nullptr) != 0) return {};
  pthread_join(thread, nullptr);
  return {.provoked = TheLog().failed == 1};
}

Verdict Fork(const Settings&) {
  Try({.size = kMinusTwo});
  const pid_t child = fork();
  if (child == 0) {
    Try({.call = Call::kNewNothrow, .size = kMinusTwo});
    std::exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  Try({.size = kMinusTwo});
  return {.provoked = status == 0 && TheLog().failed == 3};
}

Pile& Ballast() {
  static Pile pile;
  return pile;
}

Verdict NewHandler(const Settings&) {
  Ballast().Fill({.size = kMiB}, 40 * kMiB);
  std::set_new_handler([] {
    std::set_new_handler(nullptr);
    Ballast().Free();
  });
  void* const block = Try({.call = Call::kNew, .size = 40 * kMiB});
  ::operator delete(block);
  return {.provoked = block != nullptr};
}

// The part of hakmem.h that this needs; found at run time, because the program
// is linked against nothing of hakmem.
using SetHandler = void (*)(int (*handler)(const void* event, void* context),
                            void* context);

Verdict Handler(const Settings&) {
  const auto set = reinterpret_cast<SetHandler>(
      dlsym(RTLD_DEFAULT, "hakmem_set_failure_handler"));
  if (set == nullptr) return {.not_permitted = "hakmem is not preloaded"};
  Ballast().Fill({.size = kMiB}, 40 * kMiB);
  int calls = 0;
  set(
      [](const void*, void* context) {
        Ballast().Free();
        return ++*static_cast<int*>(context) == 1 ? 1 : 0;
      },
      &calls);
  void* const block = Try({.size = 40 * kMiB});
  set(nullptr, nullptr);
  free(block);
  return {.provoked = block != nullptr && calls == 1};
}

// A block of each class in the thread's cache keeps a slab each, whose memory a
// large block needs.
Verdict Purge(const Settings&) {
  constexpr std::size_t kMost = 64 * 1024;
  constexpr std::size_t kBlocks = 200;
  void* blocks[kBlocks] = {};
  std::size_t size = 16;
  for (std::size_t i = 0; i < kBlocks && size < kMost; ++i) {
    blocks[i] = malloc(size);
    size += size / 16 + 16;
  }
  for (void* block : blocks) free(block);
  void* const block = Try({.size = 55 * kMiB});
  free(block);
  return {.provoked = block != nullptr};
}

}  // namespace

std::vector<Case> ProgramCases() {
  return {
      {"storm", "Threshold", "size", "10,000 failures in a row", nullptr,
       nullptr, Storm},
      {"thread", "Threshold", "size", "a failure in a thread named provoker",
       nullptr, nullptr, Thread},
      {"fork", "Threshold", "size", "failures before, in and after a child",
       nullptr, nullptr, Fork},
      {"new_handler", "Exhaustion", "heap_limit",
       "a new-handler frees memory, and the call is served",
       "HAKMEM_HEAP_LIMIT", "64M", NewHandler},
      {"handler", "Exhaustion", "heap_limit",
       "the program's failure handler frees memory, and the call is served",
       "HAKMEM_HEAP_LIMIT", "64M", Handler},
      {"purge", "Exhaustion", "heap_limit",
       "hakmem gives its cache up, and the call is served", "HAKMEM_HEAP_LIMIT",
       "58M", Purge},
  };
}

}  // namespace hakmem::provoke
